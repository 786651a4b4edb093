//! Tests what the runtime reports to `tracing`: spans of launches, and events.
//!
//! ```text
//! cargo test --features tracing --test tracing
//! ```

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Once;

use kernel_primitives::kernels::{block_reduce, map_binary};
use kernel_primitives::prelude::*;
use kernel_primitives::{Device, Dims, Result, Stream};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// A span or an event, with its fields as text.
#[derive(Clone, Debug)]
struct Told {
    name: &'static str,
    target: String,
    level: Level,
    fields: BTreeMap<&'static str, String>,
}

impl Told {
    fn new(metadata: &'static Metadata<'static>, record: impl FnOnce(&mut Fields)) -> Self {
        let mut fields = Fields::default();
        record(&mut fields);
        Self { name: metadata.name(), target: metadata.target().into(), level: *metadata.level(), fields: fields.0 }
    }

    fn message(&self) -> &str {
        self.fields.get("message").map_or("", String::as_str)
    }
}

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.into());
    }
}

/// Collects the spans and events of each thread that listens, and counts how often spans are entered and left.
struct Listener;

#[derive(Default)]
struct Heard {
    spans: Vec<Told>,
    events: Vec<Told>,
    entered: usize,
    left: usize,
}

thread_local! {
    static HEARD: RefCell<Option<Heard>> = const { RefCell::new(None) };
}

/// Adds something to the list of this thread, if it listens.
fn hear(what: impl FnOnce(&mut Heard)) {
    HEARD.with_borrow_mut(|heard| {
        if let Some(heard) = heard {
            what(heard);
        }
    });
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "kernel_primitives"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let told = Told::new(span.metadata(), |fields| span.record(fields));
        hear(|heard| heard.spans.push(told));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let told = Told::new(event.metadata(), |fields| event.record(fields));
        hear(|heard| heard.events.push(told));
    }

    fn enter(&self, _: &Id) {
        hear(|heard| heard.entered += 1);
    }

    fn exit(&self, _: &Id) {
        hear(|heard| heard.left += 1);
    }
}

/// Returns a stream, in a process that already has the listener. If only one thread had a listener, `tracing` might first come to a span on
/// a thread without one, and then never report this span.
fn stream() -> Result<Stream> {
    static SET: Once = Once::new();
    SET.call_once(|| tracing::subscriber::set_global_default(Listener).expect("the only one"));
    Device::auto()?.stream()
}

/// Returns the spans and events of this thread while `run` ran.
fn listen(run: impl FnOnce() -> Result<()>) -> Result<Heard> {
    HEARD.set(Some(Heard::default()));
    let result = run();
    let heard = HEARD.take().expect("it was set");
    result?;
    assert_eq!((heard.entered, heard.left), (heard.spans.len(), heard.spans.len()));
    Ok(heard)
}

#[test]
fn a_launch_is_a_span_with_its_dimensions() -> Result<()> {
    let stream = stream()?;
    let x = stream.buffer_from(&[1.0f32; 1000])?;
    let mut sum = stream.buffer_zeroed::<f32>(3)?;
    let heard = listen(|| block_reduce::<f32, Add, 4>::launch(&stream, ((3, 1), (32, 2)), &x, &mut sum, Add))?;
    let [span] = &heard.spans[..] else { panic!("{:?}", heard.spans) };
    assert_eq!((span.name, &*span.target, span.level), ("launch", "kernel_primitives", Level::DEBUG));
    assert_eq!(span.fields["kernel"], "kernel_primitives::kernels::reduce::block_reduce::<f32, Add, 4>");
    assert_eq!((&*span.fields["grid"], &*span.fields["block"]), ("(3, 1, 1)", "(32, 2, 1)"));
    assert_eq!(span.fields["device"], stream.device().to_string());
    let shared: usize = span.fields["shared_bytes"].parse().expect("a number");
    assert!(shared >= size_of::<ReduceStorage<f32>>(), "{shared}");
    assert_eq!(span.fields.len(), 5, "{span:?}");
    let loads = heard.events.iter().filter(|event| event.message() == "kernel loaded").count();
    assert_eq!(loads, usize::from(stream.device().is_gpu()));
    Ok(())
}

#[test]
fn allocations_and_launches_of_graphs_are_events() -> Result<()> {
    let stream = stream()?;
    let heard = listen(|| {
        let x = stream.buffer_from(&[1.0f32; 1000])?;
        let mut y = stream.buffer_zeroed::<f32>(1000)?;
        let dims = Dims::for_items(1000).items_per_thread(4);
        let graph = stream.capture(|s| {
            map_binary::<f32, f32, Add, 4>::launch(s, dims, &x, &x, &mut y, Add)?;
            map_binary::<f32, f32, Mul, 4>::launch(s, dims, &x, &x, &mut y, Mul)
        })?;
        graph.launch(&stream)?;
        graph.launch(&stream)
    })?;
    assert!(heard.spans.is_empty(), "a captured launch is none: {:?}", heard.spans);
    let told = |message: &str| heard.events.iter().filter(|event| event.message() == message).collect::<Vec<_>>();
    let (allocations, graphs) = (told("memory allocated"), told("graph launched"));
    assert_eq!(allocations.len(), 2);
    assert!(allocations.iter().all(|event| event.fields["bytes"] == "4000" && event.level == Level::DEBUG));
    assert_eq!(graphs.len(), 2);
    assert!(graphs.iter().all(|event| event.fields["launches"] == "2"));
    assert!(graphs.iter().all(|event| event.fields["device"] == stream.device().to_string()));
    Ok(())
}

#[test]
fn a_fault_is_an_event_of_level_error() -> Result<()> {
    // The kernel writes one element in each block, and has more blocks than elements.
    let stream = stream()?;
    let x = stream.buffer_from(&[1.0f32; 100])?;
    let mut sums = stream.buffer_zeroed::<f32>(2)?;
    let heard = listen(|| {
        let fault = block_reduce::<f32, Max, 4>::launch(&stream, (3, 32), &x, &mut sums, Max)
            .and_then(|()| stream.synchronize());
        assert!(fault.is_err());
        Ok(())
    })?;
    let faults = heard.events.iter().filter(|event| event.level == Level::ERROR).collect::<Vec<_>>();
    let [fault] = &faults[..] else { panic!("{faults:?}") };
    assert_eq!(fault.fields["kernel"], "kernel_primitives::kernels::reduce::block_reduce::<f32, Max, 4>");
    assert_eq!(fault.fields["block"], "(2, 0, 0)");
    assert!(fault.fields["file"].ends_with("reduce.rs") && fault.fields["line"].parse::<u32>().is_ok(), "{fault:?}");
    assert!(fault.message().contains("out of bounds"), "{fault:?}");
    Ok(())
}

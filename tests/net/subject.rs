//! Subjects: the calls of the net, their inputs, and the expected results.

use std::any::Any;
use std::sync::Arc;

use kernel_primitives::algorithms::{Run, Tuning, Workspace};
use kernel_primitives::{Buffer, BufferSlice, BufferSliceMut, Complex, Result, Stream};

use crate::case::{Case, Lengths};
use crate::items::Item;

/// The place where a call runs.
pub struct Place<'a> {
    pub stream: &'a Stream,
    pub workspace: Option<&'a mut Workspace>,
    pub tuning: &'a Tuning,
}

impl<'a> Place<'a> {
    pub fn run(self) -> Run<'a> {
        let run = Run::on(self.stream).tuned(self.tuning);
        match self.workspace {
            Some(workspace) => run.with(workspace),
            None => run,
        }
    }
}

/// Items at some place in a buffer.
pub struct Column<T> {
    buffer: Buffer<T>,
    start: usize,
    len: usize,
    /// The end of the room.
    end: usize,
}

impl<T: Item> Column<T> {
    /// Returns the items for reading.
    pub fn get(&self) -> BufferSlice<'_, T> {
        self.buffer.slice(self.start..self.start + self.len).expect("inside")
    }

    /// Returns room for the results, and more after it.
    pub fn room(&mut self) -> BufferSliceMut<'_, T> {
        self.buffer.slice_mut(self.start..self.end).expect("inside")
    }

    /// Returns room for the results only.
    pub fn exact(&mut self) -> BufferSliceMut<'_, T> {
        self.buffer.slice_mut(self.start..self.start + self.len).expect("inside")
    }

    pub fn upload(stream: &Stream, items: &[T], start: usize) -> Result<Self> {
        let buffer = stream.buffer_from(&Self::among(items, start, 3))?;
        Ok(Self { start, len: items.len(), end: buffer.len(), buffer })
    }

    pub fn refill(&mut self, items: &[T]) -> Result<()> {
        assert_eq!(items.len(), self.len, "a refill keeps the lengths");
        self.buffer.copy_from(&Self::among(items, self.start, 3))
    }

    /// Returns the items, with others before and after them.
    fn among(items: &[T], start: usize, after: usize) -> Vec<T> {
        let beside = |range: std::ops::Range<usize>| range.map(T::beside);
        beside(0..start).chain(items.iter().copied()).chain(beside(0..after)).collect()
    }

    fn for_results(stream: &Stream, len: usize, start: usize) -> Result<Self> {
        let buffer = stream.buffer_from(&Self::untouched(len, start))?;
        Ok(Self { start, len, end: buffer.len(), buffer })
    }

    /// Makes the room one place shorter than the results.
    fn cut(&mut self) {
        self.len -= 1;
        self.end = self.start + self.len;
    }

    fn untouched(len: usize, start: usize) -> Vec<T> {
        (0..start + len + AFTER).map(T::beside).collect()
    }

    fn verify(&self, want: &Want<T>) -> Result<(), String> {
        let found = self.buffer.to_vec().map_err(|error| format!("{error}"))?;
        let (before, rest) = found.split_at(self.start);
        let (results, after) = rest.split_at(want.len);
        (want.check)(results)?;
        for (i, found) in before.iter().enumerate().chain((self.start + want.len..).zip(after)) {
            if !found.same(&T::beside(i)) {
                let from_end = i as i64 - (self.start + want.len) as i64;
                return Err(format!("wrote {found:?} outside of the {} results, {from_end} after their end", want.len));
            }
        }
        Ok(())
    }
}

/// The number of elements of a buffer after the room for the results.
const AFTER: usize = 19;

/// The expected results.
pub struct Want<T> {
    len: usize,
    #[allow(clippy::type_complexity, reason = "a function")]
    check: Box<dyn Fn(&[T]) -> Result<(), String> + Send + Sync>,
}

fn want<T: Item, U: std::fmt::Debug + Send + Sync + 'static>(
    expected: Vec<U>,
    holds: impl Fn(&U, &T) -> bool + Send + Sync + 'static,
) -> Want<T> {
    let len = expected.len();
    let check = move |found: &[T]| match expected.iter().zip(found).position(|(e, f)| !holds(e, f)) {
        None => Ok(()),
        Some(i) => Err(format!("result {i} of {len} is {:?} and not {:?}", found[i], expected[i])),
    };
    Want { len, check: Box::new(check) }
}

/// Expects these bits.
pub fn exact<T: Item>(expected: Vec<T>) -> Want<T> {
    want(expected, T::same)
}

/// Expects these bits, or NaN for NaN.
pub fn alike<T: Item>(expected: Vec<T>) -> Want<T> {
    #[allow(clippy::eq_op, reason = "NaN is not itself")]
    want(expected, |a, b| a.same(b) || (a != a && b != b))
}

/// Expects equal values, or NaN for NaN.
pub fn equal<T: Item>(expected: Vec<T>) -> Want<T> {
    #[allow(clippy::eq_op, reason = "NaN is not itself")]
    want(expected, |a, b| a == b || (a != a && b != b))
}

/// Expects results near a number. Each comes with the largest distance.
pub fn near<T: Item + Into<f64>>(expected: Vec<(f64, f64)>) -> Want<T> {
    want(expected, |&(value, bound): &(f64, f64), &found: &T| (Into::<f64>::into(found) - value).abs() <= bound)
}

/// Expects results near several numbers side by side. They come with the largest distance.
pub fn near_parts<T: Item + Into<f64>, const N: usize>(expected: Vec<([f64; N], f64)>) -> Want<[T; N]>
where
    [T; N]: Item,
{
    want(expected, |(values, bound): &([f64; N], f64), found: &[T; N]| {
        values.iter().zip(found).all(|(value, &found)| (Into::<f64>::into(found) - value).abs() <= *bound)
    })
}

/// Expects results near complex numbers. Each comes with the largest distance.
pub fn near_complex<T: Item + Into<f64>>(expected: Vec<(Complex<f64>, f64)>) -> Want<Complex<T>>
where
    Complex<T>: Item,
{
    want(expected, |&(value, bound): &(Complex<f64>, f64), found: &Complex<T>| {
        (Complex::new(found.re.into(), found.im.into()) - value).norm_sqr().sqrt() <= bound
    })
}

/// Vectors in buffers.
pub trait Inputs {
    type Device: Send + Sync;
    fn upload(&self, stream: &Stream, start: usize) -> Result<Self::Device>;
    fn refill(&self, device: &mut Self::Device) -> Result<()>;
}

/// Buffers, and their expected contents.
pub trait Outputs {
    type Device: Send;
    fn lens(&self) -> Vec<usize>;
    fn room(stream: &Stream, start: usize, lens: &[usize]) -> Result<Self::Device>;
    fn clear(device: &mut Self::Device) -> Result<()>;
    /// Makes the room of an output one place shorter than its results.
    fn cut(device: &mut Self::Device, output: usize);
    fn verify(&self, device: &Self::Device) -> Result<(), String>;
    /// Returns the whole contents of the buffers as text, with every bit of floats.
    fn printed(device: &Self::Device) -> Result<String>;
}

/// Returns the place where the `n`th column begins, if the first begins at `start`.
pub fn start_of(start: usize, n: usize) -> usize {
    start * (2 * n + 1) % 17
}

macro_rules! columns {
    ($($n:tt $t:ident),*) => {
        impl<$($t: Item),*> Inputs for ($(Vec<$t>,)*) {
            type Device = ($(Column<$t>,)*);
            fn upload(&self, stream: &Stream, start: usize) -> Result<Self::Device> {
                Ok(($(Column::upload(stream, &self.$n, start_of(start, $n))?,)*))
            }
            fn refill(&self, device: &mut Self::Device) -> Result<()> {
                $(device.$n.refill(&self.$n)?;)*
                Ok(())
            }
        }

        impl<$($t: Item),*> Outputs for ($(Want<$t>,)*) {
            type Device = ($(Column<$t>,)*);
            fn lens(&self) -> Vec<usize> {
                vec![$(self.$n.len),*]
            }
            fn room(stream: &Stream, start: usize, lens: &[usize]) -> Result<Self::Device> {
                Ok(($(Column::for_results(stream, lens[$n], start_of(start, $n))?,)*))
            }
            fn clear(device: &mut Self::Device) -> Result<()> {
                $(device.$n.buffer.copy_from(&Column::<$t>::untouched(device.$n.len, device.$n.start))?;)*
                Ok(())
            }
            fn cut(device: &mut Self::Device, output: usize) {
                $(if output == $n {
                    device.$n.cut();
                })*
            }
            fn verify(&self, device: &Self::Device) -> Result<(), String> {
                $(device.$n.verify(&self.$n).map_err(|what| format!("output {}: {what}", $n))?;)*
                Ok(())
            }
            fn printed(device: &Self::Device) -> Result<String> {
                Ok([$(format!("{:?}", device.$n.buffer.to_vec()?)),*].concat())
            }
        }
    };
}
columns!(0 A);
columns!(0 A, 1 B);
columns!(0 A, 1 B, 2 C);
columns!(0 A, 1 B, 2 C, 3 D);

impl Inputs for () {
    type Device = ();
    fn upload(&self, _: &Stream, _: usize) -> Result<()> {
        Ok(())
    }
    fn refill(&self, _: &mut ()) -> Result<()> {
        Ok(())
    }
}

/// Columns of any types on a device. Inputs or outputs of these types made them.
type Held = dyn Any + Send + Sync;
type Room = dyn Any + Send;

/// The reason why columns have the types that they are taken for.
const OWN: &str = "a subject has its own columns";

/// [`Inputs`] of any types.
trait AnyInputs: Send + Sync {
    fn upload(&self, stream: &Stream, start: usize) -> Result<Arc<Held>>;
    fn refill(&self, device: &mut Held) -> Result<()>;
}

impl<I: Inputs + Send + Sync + 'static> AnyInputs for I {
    fn upload(&self, stream: &Stream, start: usize) -> Result<Arc<Held>> {
        Ok(Arc::new(Inputs::upload(self, stream, start)?))
    }
    fn refill(&self, device: &mut Held) -> Result<()> {
        Inputs::refill(self, device.downcast_mut::<I::Device>().expect(OWN))
    }
}

/// [`Outputs`] of any types.
trait AnyOutputs: Send + Sync {
    fn lens(&self) -> Vec<usize>;
    fn room(&self, stream: &Stream, start: usize, lens: &[usize]) -> Result<Box<Room>>;
    fn clear(&self, device: &mut Room) -> Result<()>;
    fn cut(&self, device: &mut Room, output: usize);
    fn verify(&self, device: &Room) -> Result<(), String>;
    fn printed(&self, device: &Room) -> Result<String>;
}

impl<O: Outputs + Send + Sync + 'static> AnyOutputs for O {
    fn lens(&self) -> Vec<usize> {
        Outputs::lens(self)
    }
    fn room(&self, stream: &Stream, start: usize, lens: &[usize]) -> Result<Box<Room>> {
        Ok(Box::new(<O as Outputs>::room(stream, start, lens)?))
    }
    fn clear(&self, device: &mut Room) -> Result<()> {
        <O as Outputs>::clear(device.downcast_mut::<O::Device>().expect(OWN))
    }
    fn cut(&self, device: &mut Room, output: usize) {
        <O as Outputs>::cut(device.downcast_mut::<O::Device>().expect(OWN), output);
    }
    fn verify(&self, device: &Room) -> Result<(), String> {
        Outputs::verify(self, device.downcast_ref::<O::Device>().expect(OWN))
    }
    fn printed(&self, device: &Room) -> Result<String> {
        <O as Outputs>::printed(device.downcast_ref::<O::Device>().expect(OWN))
    }
}

/// The items of a case for a subject, and the expected results.
struct Round {
    case: Case,
    inputs: Box<dyn AnyInputs>,
    wants: Box<dyn AnyOutputs>,
}

type Call = dyn Fn(&Case, Place<'_>, &Held, &mut Room) -> Result<()> + Send + Sync;

/// The result of a call if an output is one place shorter than needed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Short {
    /// An error of lengths.
    Length,
    /// An error of lengths, or of bins if there is no place.
    Bins,
    /// A fault, because only the launch knows how many places are needed.
    Fault,
    /// It is no error, or it depends on the items, or another call of the subject returns the error, under its own name.
    Any,
}

/// A call of the net. Only a few functions have the types of its columns, and the compiler makes these for each subject. The tests use the
/// others.
pub struct Subject {
    /// The functions of the library that it covers. The first one gives it its name.
    pub covers: &'static [&'static str],
    pub types: &'static str,
    pub lengths: Lengths,
    /// Whether a case of one tile needs temporary memory.
    pub takes_memory: fn(&Case) -> bool,
    shorts: &'static [Short],
    round: Box<dyn Fn(&Case) -> Round>,
    call: Arc<Call>,
}

impl Subject {
    pub fn name(&self) -> String {
        format!("{}<{}>", self.covers[0], self.types)
    }

    /// Says for which cases one tile needs temporary memory. Without this, no case does.
    pub fn takes_memory(self, takes_memory: fn(&Case) -> bool) -> Self {
        Self { takes_memory, ..self }
    }

    /// Says what happens if an output is too short, for the first outputs. Without this, it is an error of lengths.
    pub fn shorts(self, shorts: &'static [Short]) -> Self {
        Self { shorts, ..self }
    }

    /// Returns what happens if this output is too short.
    pub fn short(&self, output: usize) -> Short {
        self.shorts.get(output).copied().unwrap_or(Short::Length)
    }

    /// Begins with the first case. The others are for [`Trial::refill`].
    pub fn begin(&self, cases: &[Case], stream: &Stream) -> Result<Trial> {
        let rounds: Vec<Round> = cases.iter().map(|case| (self.round)(case)).collect();
        let all: Vec<Vec<usize>> = rounds.iter().map(|round| round.wants.lens()).collect();
        let lens: Vec<usize> = (0..all[0].len()).map(|n| all.iter().map(|lens| lens[n]).max().unwrap_or(0)).collect();
        let Round { case, inputs, wants } = &rounds[0];
        Ok(Trial {
            inputs: inputs.upload(stream, case.offset)?,
            outputs: wants.room(stream, case.place, &lens)?,
            rounds: Arc::new(rounds),
            round: 0,
            lens,
            call: self.call.clone(),
        })
    }
}

/// Makes a subject from the way to make its inputs, the expected results, and its call.
pub fn subject<I, O>(
    covers: &'static [&'static str],
    types: &'static str,
    lengths: Lengths,
    inputs: impl Fn(&Case) -> I + 'static,
    expected: impl Fn(&Case, &I) -> O + 'static,
    call: impl Fn(&Case, Place<'_>, &I::Device, &mut O::Device) -> Result<()> + Send + Sync + 'static,
) -> Subject
where
    I: Inputs + Send + Sync + 'static,
    O: Outputs + Send + Sync + 'static,
{
    let round = move |case: &Case| {
        let inputs = inputs(case);
        let wants = Box::new(expected(case, &inputs));
        Round { case: case.clone(), inputs: Box::new(inputs), wants }
    };
    let call = erased(move |case, place, inputs, outputs| {
        let inputs = inputs.downcast_ref::<I::Device>().expect(OWN);
        call(case, place, inputs, outputs.downcast_mut::<O::Device>().expect(OWN))
    });
    Subject { covers, types, lengths, takes_memory: |_| false, shorts: &[], round: Box::new(round), call }
}

fn erased(call: impl Fn(&Case, Place<'_>, &Held, &mut Room) -> Result<()> + Send + Sync + 'static) -> Arc<Call> {
    Arc::new(call)
}

/// A subject on a case, in buffers.
pub struct Trial {
    inputs: Arc<Held>,
    outputs: Box<Room>,
    rounds: Arc<Vec<Round>>,
    round: usize,
    lens: Vec<usize>,
    call: Arc<Call>,
}

impl Trial {
    pub fn call(&mut self, place: Place<'_>) -> Result<()> {
        (self.call)(&self.rounds[self.round].case, place, &*self.inputs, &mut *self.outputs)
    }

    /// Returns the numbers of results of the present items.
    pub fn lens(&self) -> Vec<usize> {
        self.rounds[self.round].wants.lens()
    }

    /// Clears the results.
    pub fn clear(&mut self) -> Result<()> {
        self.rounds[self.round].wants.clear(&mut *self.outputs)
    }

    /// Makes the room of an output one place shorter than its results. It cannot be verified or cleared after that.
    pub fn cut(&mut self, output: usize) {
        self.rounds[self.round].wants.cut(&mut *self.outputs, output);
    }

    /// Checks that the results are those of the present items, and that nothing else was written.
    pub fn verify(&self) -> Result<(), String> {
        self.rounds[self.round].wants.verify(&*self.outputs)
    }

    /// Returns the whole contents of the buffers of results as text, with every bit of floats.
    pub fn printed(&self) -> Result<String> {
        self.rounds[self.round].wants.printed(&*self.outputs)
    }

    /// Makes a trial with the same inputs, and results of its own.
    pub fn twin(&self, stream: &Stream) -> Result<Self> {
        let first = &self.rounds[0];
        Ok(Self {
            inputs: self.inputs.clone(),
            outputs: first.wants.room(stream, first.case.place, &self.lens)?,
            rounds: self.rounds.clone(),
            round: self.round,
            lens: self.lens.clone(),
            call: self.call.clone(),
        })
    }

    /// Writes the items of the next case to the same buffers, and clears the results. It does not change twins.
    pub fn refill(&mut self) -> Result<()> {
        self.round += 1;
        let round = &self.rounds[self.round];
        round.inputs.refill(Arc::get_mut(&mut self.inputs).expect("no twin has them"))?;
        self.clear()
    }
}

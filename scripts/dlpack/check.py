#!/usr/bin/env python3
"""Exchanges tensors with NumPy, PyTorch and CuPy by DLPack, in this process, and checks that nothing is copied.

    scripts/dlpack/check.py            # on the CPU: the emulator's memory
    scripts/dlpack/check.py --gpu      # on the first GPU, too; builds the library with the feature `cuda`
    scripts/dlpack/check.py --library target/dlpack/release/libdlpack_bridge.so

What is not installed is said, and is no failure; with nothing to exchange with, the script fails.
"""

import argparse
import ctypes
import gc
import importlib
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSIONED, UNVERSIONED = b"dltensor_versioned", b"dltensor"


class Device(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class ManagedVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    ]


def struct(name, pointer):
    return ctypes.cast(pointer, ctypes.POINTER(ManagedVersioned if name == VERSIONED else Managed)).contents


capsules = ctypes.pythonapi
DESTRUCTOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
capsules.PyCapsule_New.restype = ctypes.py_object
capsules.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, DESTRUCTOR]
capsules.PyCapsule_GetName.restype = ctypes.c_char_p
capsules.PyCapsule_GetName.argtypes = [ctypes.py_object]
capsules.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
capsules.PyCapsule_GetPointer.restype = ctypes.c_void_p
capsules.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
# As a destructor sees it: without a reference that is counted.
get_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_GetName", capsules))
get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", capsules))
# The names outlive the capsules.
USED = {VERSIONED: b"used_dltensor_versioned", UNVERSIONED: b"used_dltensor"}


def give_back(name, pointer):
    deleter = struct(name, pointer).deleter
    if deleter:
        DELETER(deleter)(pointer)


@DESTRUCTOR
def unused(capsule):
    """Gives back what nobody has taken out of its capsule."""
    name = get_name(capsule)
    if name in USED:
        give_back(name, get_pointer(capsule, name))


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(str(path))
        pointer = ctypes.c_void_p
        for name, result, arguments in [
            ("kp_error", ctypes.c_char_p, []),
            ("kp_open", pointer, [ctypes.c_int32]),
            ("kp_handle", pointer, [pointer]),
            ("kp_matrix", pointer, [pointer, ctypes.c_size_t, ctypes.c_size_t]),
            ("kp_import", pointer, [pointer, pointer, ctypes.c_bool]),
            ("kp_export", pointer, [pointer, ctypes.c_int64, ctypes.c_bool]),
            ("kp_scale", ctypes.c_int32, [pointer, ctypes.c_float]),
            ("kp_sum", ctypes.c_float, [pointer]),
            ("kp_drop", None, [pointer]),
            ("kp_close", None, [pointer]),
        ]:
            function = getattr(self.c, name)
            function.restype, function.argtypes = result, arguments

    def checked(self, value):
        if value is None or value == -1:
            raise RuntimeError(self.c.kp_error().decode())
        return value


class Stream:
    def __init__(self, library, ordinal):
        self.library, self.ordinal = library, ordinal
        self.raw = library.checked(library.c.kp_open(ordinal))
        self.handle = library.c.kp_handle(self.raw)

    def matrix(self, rows, columns):
        return Tensor(self, self.library.checked(self.library.c.kp_matrix(self.raw, rows, columns)))

    def take(self, producer, versioned=True):
        """The tensor of an object of another library."""
        order = {} if self.handle is None else {"stream": self.handle}
        try:
            capsule = producer.__dlpack__(max_version=(1, 0), **order) if versioned else producer.__dlpack__(**order)
        except TypeError:  # of before version 1
            capsule = producer.__dlpack__(**order)
        name = capsules.PyCapsule_GetName(capsule)
        pointer = capsules.PyCapsule_GetPointer(capsule, name)
        capsules.PyCapsule_SetName(capsule, USED[name])
        return Tensor(self, self.library.checked(self.library.c.kp_import(self.raw, pointer, name == VERSIONED)))


class Tensor:
    """A tensor of the library, as an object that others import."""

    def __init__(self, stream, raw):
        self.stream, self.c, self.raw = stream, stream.library.c, raw

    def __del__(self):
        self.c.kp_drop(self.raw)

    def __dlpack_device__(self):
        return (1, 0) if self.stream.ordinal < 0 else (2, self.stream.ordinal)

    def export(self, stream, versioned):
        return self.stream.library.checked(self.c.kp_export(self.raw, stream or 0, versioned))

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("only without a copy")
        if stream is None and self.stream.ordinal >= 0:
            stream = 1  # the legacy default stream, says the protocol
        name = VERSIONED if max_version is not None and max_version[0] >= 1 else UNVERSIONED
        return capsules.PyCapsule_New(self.export(stream, name == VERSIONED), name, unused)

    def address(self):
        pointer = self.export(None, True)
        tensor = struct(VERSIONED, pointer).tensor
        address = tensor.data + tensor.byte_offset
        give_back(VERSIONED, pointer)
        return address

    def scale(self, factor):
        self.stream.library.checked(self.c.kp_scale(self.raw, factor))

    def sum(self):
        return self.c.kp_sum(self.raw)


def expect(what, found, expected):
    if found != expected:
        sys.exit(f"FAILED: {what}: {found}, not {expected}")
    print(f"  {what}: {hex(found) if isinstance(found, int) and found > 1 << 16 else found}")


def exchange(name, stream, arange, address, consume, total, wait):
    """Both directions with one library: its arrays of the numbers from 0 to 11, their addresses, and its import."""
    print(f"{name}, {'the CPU' if stream.ordinal < 0 else 'CUDA'}")
    for versioned in (True, False):
        theirs = arange()
        wait()
        ours = stream.take(theirs, versioned)
        expect("imported: address", ours.address(), address(theirs))
        expect("imported: sum", ours.sum(), 66.0)
        ours.scale(2.0)
        ours.sum()  # waits
        expect("scaled here, summed there", total(theirs), 132.0)
        del theirs
        gc.collect()
        expect("kept after the other side has dropped it: sum", ours.sum(), 132.0)
        del ours

    ours = stream.matrix(3, 4)
    at = ours.address()
    theirs = consume(ours)
    expect("exported: address", address(theirs), at)
    expect("exported: shape", tuple(theirs.shape), (3, 4))
    expect("exported: sum", total(theirs), 66.0)
    ours.scale(3.0)
    ours.sum()  # waits
    del ours
    gc.collect()
    expect("kept after this side has dropped it: sum", total(theirs), 198.0)
    del theirs
    gc.collect()
    # What nobody takes out of its capsule is given back.
    stream.matrix(3, 4).__dlpack__(max_version=(1, 0))
    gc.collect()


def numpy_on_cpu(stream, numpy):
    exchange(
        f"NumPy {numpy.__version__}",
        stream,
        lambda: numpy.arange(12, dtype=numpy.float32).reshape(3, 4),
        lambda array: array.ctypes.data,
        numpy.from_dlpack,
        lambda array: float(array.sum()),
        lambda: None,
    )
    array = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
    turned = array[::-1, ::2].T
    ours = stream.take(turned)
    expect("a view with a negative stride: address", ours.address(), turned.ctypes.data)
    ours.scale(0.0)
    expect("the view alone was scaled", array.sum(), float(1 + 3 + 5 + 7 + 9 + 11))
    again = numpy.from_dlpack(stream.take(turned))
    expect("strides there and back", again.strides, turned.strides)

    frozen = numpy.arange(4, dtype=numpy.float32)
    frozen.flags.writeable = False
    try:
        ours = stream.take(frozen)
    except BufferError as error:  # before version 1
        return print(f"  read-only arrays are not exported by this NumPy: {error}")
    expect("read-only: sum", ours.sum(), 6.0)
    try:
        ours.scale(2.0)
        sys.exit("FAILED: a read-only array was written")
    except RuntimeError as error:
        print(f"  read-only: {error}")
    expect("read-only there and back: writeable", numpy.from_dlpack(ours).flags.writeable, False)
    try:
        stream.take(numpy.arange(3.0))
        sys.exit("FAILED: float64 was imported as f32")
    except RuntimeError as error:
        print(f"  another type: {error}")


def torch_on(stream, torch):
    device = "cpu" if stream.ordinal < 0 else f"cuda:{stream.ordinal}"
    exchange(
        f"PyTorch {torch.__version__}",
        stream,
        lambda: torch.arange(12, dtype=torch.float32, device=device).reshape(3, 4),
        lambda tensor: tensor.data_ptr(),
        torch.from_dlpack,
        lambda tensor: float(tensor.sum()),
        lambda: None if device == "cpu" else torch.cuda.synchronize(),
    )
    if device != "cpu":
        # Without a wait of the host: the producer orders its stream before ours, and ours comes before the consumer's.
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(20):
                theirs = torch.ones(1 << 24, dtype=torch.float32, device=device) * 2
                ours = stream.take(theirs)
                ours.scale(0.5)
                again = torch.from_dlpack(ours) + 1
                del ours, theirs
                total = float(again.sum(dtype=torch.float64))
                if total != 2.0 * (1 << 24):
                    sys.exit(f"FAILED: work was not in order: {total}")
        print("  20 exchanges on a side stream, without a wait: in order")


def cupy_on(stream, cupy):
    exchange(
        f"CuPy {cupy.__version__}",
        stream,
        lambda: cupy.arange(12, dtype=cupy.float32).reshape(3, 4),
        lambda array: array.data.ptr,
        cupy.from_dlpack,
        lambda array: float(array.sum()),
        cupy.cuda.Device().synchronize,
    )


def imported(name):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        print(f"{name}: skipped, {error}")
        return None


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--gpu", action="store_true", help="on the first GPU, too")
    arguments.add_argument("--library", type=pathlib.Path, help="the library, if it is built already")
    options = arguments.parse_args()
    if options.library is None:
        target = ROOT / "target" / "dlpack"
        manifest = ROOT / "scripts" / "dlpack" / "bridge" / "Cargo.toml"
        command = ["cargo", "build", "--release", "--manifest-path", manifest, "--target-dir", target]
        subprocess.run(command + (["--features", "cuda"] if options.gpu else []), check=True)
        options.library = target / "release" / "libdlpack_bridge.so"
    library = Library(options.library)
    numpy, torch, cupy = imported("numpy"), imported("torch"), imported("cupy")
    checked = 0

    stream = Stream(library, -1)
    for module, check in [(numpy, numpy_on_cpu), (torch, torch_on)]:
        if module is not None:
            check(stream, module)
            checked += 1
    if options.gpu:
        stream = Stream(library, 0)
        for module, check in [(torch, torch_on), (cupy, cupy_on)]:
            if module is not None:
                check(stream, module)
                checked += 1
    if checked == 0:
        sys.exit("FAILED: there is nothing to exchange with: pip install numpy")
    print(f"{checked} exchanges, nothing was copied")


if __name__ == "__main__":
    main()

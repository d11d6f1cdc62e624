"""Runs verify.wasm in wasmtime, by its C library: standard input, output and the exit code are those of the module.

    python3 cmd/verify-wasm/wasmtime_run.py libwasmtime.so verify.wasm --network 3f1a... < org.proof
"""

import ctypes
import sys

POINTER = ctypes.c_void_p


class Func(ctypes.Structure):
    """wasmtime_func_t of wasmtime/extern.h."""

    _fields_ = [("store_id", ctypes.c_uint64), ("private", POINTER)]


class Bytes(ctypes.Structure):
    """wasm_byte_vec_t of wasm.h."""

    _fields_ = [("size", ctypes.c_size_t), ("data", POINTER)]


class Wasmtime:
    """The functions of the C library that a command takes (wasmtime.h, wasi.h)."""

    def __init__(self, library):
        self.library = ctypes.CDLL(library)

    def __call__(self, name, *args, result=POINTER):
        function = getattr(self.library, name)
        function.restype = result
        function.argtypes = [type(a) if isinstance(a, ctypes._SimpleCData) else POINTER for a in args]
        return function(*args)

    def check(self, error):
        """Ends with the exit code of the module, if that is what an error states, and otherwise raises it."""
        if not error:
            return
        status = ctypes.c_int()
        if self("wasmtime_error_exit_status", POINTER(error), ctypes.byref(status), result=ctypes.c_bool):
            sys.exit(status.value)
        text = Bytes()
        self("wasmtime_error_message", POINTER(error), ctypes.byref(text), result=None)
        raise RuntimeError(ctypes.string_at(text.data, text.size).decode())


def run(library, file, args):
    """Runs the module of a file as a command of WASI preview 1."""
    call = Wasmtime(library)
    engine = POINTER(call("wasm_engine_new"))
    store = POINTER(call("wasmtime_store_new", engine, None, None))
    context = POINTER(call("wasmtime_store_context", store))
    wasi = POINTER(call("wasi_config_new"))
    argv = (ctypes.c_char_p * (1 + len(args)))(b"verify-wasm", *(a.encode() for a in args))
    call("wasi_config_set_argv", wasi, ctypes.c_size_t(len(argv)), argv, result=ctypes.c_bool)
    for stream in ("stdin", "stdout", "stderr"):
        call("wasi_config_inherit_" + stream, wasi, result=None)
    call.check(call("wasmtime_context_set_wasi", context, wasi))
    with open(file, "rb") as f:
        code = f.read()
    module, function, trap = POINTER(), Func(), POINTER()
    call.check(call("wasmtime_module_new", engine, ctypes.c_char_p(code), ctypes.c_size_t(len(code)), ctypes.byref(module)))
    linker = POINTER(call("wasmtime_linker_new", engine))
    call.check(call("wasmtime_linker_define_wasi", linker))
    none = (ctypes.c_char_p(b""), ctypes.c_size_t(0))
    call.check(call("wasmtime_linker_module", linker, context, *none, module))
    call.check(call("wasmtime_linker_get_default", linker, context, *none, ctypes.byref(function)))
    count = ctypes.c_size_t(0)
    call.check(call("wasmtime_func_call", context, ctypes.byref(function), None, count, None, count, ctypes.byref(trap)))
    if trap:
        sys.exit("the module trapped")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    run(sys.argv[1], sys.argv[2], sys.argv[3:])

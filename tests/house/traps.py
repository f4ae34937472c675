#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No kernel of a program stops at a trap or has no effect. Where a kernel refers to something that only the host has, a static constexpr member of
a class by reference say, nvcc drops what follows and says nothing: a trap when it optimizes, on which the launch fails, nothing at all without.

Usage: traps.py PROGRAM | --self-test"""
import pathlib
import struct
import sys

EM_CUDA = 190
# Since Volta an instruction has 16 bytes and its kind in the low 12 bits.
TRAP, BRANCH, READ_SPECIAL = 0x95C, 0x947, 0x919
STORES = {0x385, 0x386, 0x985, 0x986, 0x38B, 0x38C, 0x38D, 0x38E, 0x3A8, 0x3A9, 0x98E, 0x9A8}    # to any address or a global one, and atomic ones


def kernels(data):
    """(name, opcodes) of each kernel in the device code that a program holds: ELF files within it."""
    at = data.find(b"\x7fELF\x02\x01")
    while at >= 0:
        if struct.unpack_from("<H", data, at + 18)[0] == EM_CUDA:
            table, = struct.unpack_from("<Q", data, at + 40)
            size, count, names = struct.unpack_from("<HHH", data, at + 58)
            sections = [struct.unpack_from("<IIQQQQ", data, at + table + i * size) for i in range(count)]
            for name_at, _, _, _, offset, length in sections:
                start = at + sections[names][4] + name_at
                name = data[start:data.index(b"\0", start)].decode()
                if name.startswith(".text."):
                    yield name[len(".text."):], [struct.unpack_from("<H", data, at + offset + i)[0] & 0xFFF for i in range(0, length, 16)]
        at = data.find(b"\x7fELF\x02\x01", at + 4)


def fault(name, opcodes):
    """What is wrong with a kernel, or nothing."""
    # Without optimization a kernel begins with a look at its stack: S2R, ISETP, @P BRA, BPT.TRAP.
    stack = next((i for i in range(3, min(8, len(opcodes))) if (opcodes[i - 3], opcodes[i - 1], opcodes[i]) == (READ_SPECIAL, BRANCH, TRAP)), None)
    if TRAP in opcodes[:stack] + opcodes[stack + 1:] if stack else TRAP in opcodes:
        return "stops at a trap"
    return "has no effect" if not STORES.intersection(opcodes) and "EmptyKernel" not in name else None


def cubin(code):
    """An ELF file with one kernel, `alone`."""
    strings = b"\0.text.alone\0"
    header = bytearray(64)
    header[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<H", header, 18, EM_CUDA)
    struct.pack_into("<Q", header, 40, 64)
    struct.pack_into("<HHH", header, 58, 64, 2, 0)
    end = 64 + 2 * 64
    sections = b""
    for name, offset, length in ((0, end, len(strings)), (1, end + len(strings), len(code))):
        sections += struct.pack("<IIQQQQ", name, 0, 0, 0, offset, length).ljust(64, b"\0")
    return bytes(header) + sections + strings + code


def self_test():
    plain, trap = struct.pack("<H", 0x94D).ljust(16, b"\0"), struct.pack("<H", 0x795C).ljust(16, b"\0")
    faults = []
    found = list(kernels(b"before" + cubin(plain + trap) + b"between" + cubin(plain)))
    if found != [("alone", [0x94D, TRAP]), ("alone", [0x94D])]:
        faults.append(f"found {found}")
    stack, store, other = [READ_SPECIAL, 0x20C, BRANCH, TRAP], [0x985], [0x202]
    for opcodes, expected in ((other + store, None), (stack + store, None), (stack + other, "has no effect"), (stack + store + [TRAP], "stops at a trap"),
                              (other + [BRANCH, TRAP] + store, "stops at a trap")):
        if fault("name", opcodes) != expected:
            faults.append(f"{[hex(o) for o in opcodes]}: {fault('name', opcodes)}, not {expected}")
    return faults


def main():
    if sys.argv[1:] == ["--self-test"]:
        faults = self_test()
        print("\n".join(faults) if faults else "traps are found")
        return 1 if faults else 0
    found = list(kernels(pathlib.Path(sys.argv[1]).read_bytes()))
    faults = [(name, fault(name, opcodes)) for name, opcodes in found if fault(name, opcodes)]
    for name, what in faults:
        print(f"{name}: {what}. It refers to what only the host has: copy it, or use its type only")
    print(f"{len(found)} kernels, {len(faults)} of them with a fault" + ("" if found else ": is the device code compressed?"))
    return 1 if faults or not found else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No kernel of a program stops at a trap. Where a kernel refers to something that only the host has, a static constexpr member of a class by
reference say, nvcc compiles a trap instead and says nothing: on a GPU the launch fails.

Usage: traps.py PROGRAM | --self-test"""
import pathlib
import struct
import sys

EM_CUDA = 190
TRAP = 0x95C                                                   # BPT.TRAP: the low 12 bits of an instruction of 16 bytes, since Volta


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
    return faults


def main():
    if sys.argv[1:] == ["--self-test"]:
        faults = self_test()
        print("\n".join(faults) if faults else "traps are found")
        return 1 if faults else 0
    found = list(kernels(pathlib.Path(sys.argv[1]).read_bytes()))
    trapped = [name for name, opcodes in found if TRAP in opcodes]
    for name in trapped:
        print(f"{name}: stops at a trap. It refers to what only the host has: copy it, or use its type only")
    print(f"{len(found)} kernels, {len(trapped)} of them stop at a trap" + ("" if found else ": is the device code compressed?"))
    return 1 if trapped or not found else 0


if __name__ == "__main__":
    sys.exit(main())

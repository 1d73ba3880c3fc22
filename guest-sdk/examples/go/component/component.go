// Typed tools in Go: the conversion of arguments and results. The compiler makes a core module, `wasm-tools` turns it into
// a component, and this file implements the canonical ABI between the two:
//
//   - A string or list is a pointer and a length, in memory that the caller allocated with cabi_realloc.
//   - Records are flattened; an option is a case (0 or 1) and a value; an enum is a number.
//   - A result of more than one number is a pointer to a structure; a variant in it is a byte for the case, followed by
//     the value.
//
// Addresses have 32 bits in WebAssembly, although Go's own pointers have 64 bits there. Each call has its own instance, so
// nothing is freed.
package main

import "unsafe"

// Enum, record and variant of the contract.
type letters uint8

const (
	asWritten letters = iota
	lowered
)

type counts struct{ words, distinct uint32 }

type reason uint8

const (
	noWords reason = iota
	tooLong
)

type problem struct {
	reason     reason
	characters uint32
}

type frequency struct {
	word  string
	times uint32
}

// Memory for arguments and for the two pages of the adapter from WASI 0.1. Go's heap is unsuitable: the adapter allocates
// before the heap exists, and a garbage collection reads the clock, while a component must not call imports during an
// allocation. Arguments that do not fit end the call.
var (
	arena [8 << 20]byte
	used  uintptr
)

//go:wasmexport cabi_realloc
//go:nosplit
func cabiRealloc(old, oldSize, align, size uint32) uint32 {
	base := uintptr(unsafe.Pointer(&arena))
	start := (base+used+uintptr(align)-1)&^(uintptr(align)-1) - base
	if old != 0 || start+uintptr(size) > uintptr(len(arena)) {
		panic("the arguments are too large")
	}
	used = start + uintptr(size)
	return uint32(base + start)
}

// Results of the last call: the structures that the host reads, and references that keep their targets alive.
var (
	counted struct {
		isErr uint8
		ok    counts
	}
	failed struct {
		isErr uint8
		err   problem
	}
	list struct{ address, length uint32 }
	text struct {
		isErr           uint8
		address, length uint32
	}
	kept any
)

// Frequency in the layout of the canonical ABI.
type item struct{ word, length, times uint32 }

func address(value unsafe.Pointer) uint32 { return uint32(uintptr(value)) }

func stringAddress(text string) uint32 { return address(unsafe.Pointer(unsafe.StringData(text))) }

//go:wasmexport example:words/text@0.1.0#count
func exportCount(input string, hasShortest, shortest, lettersCase uint32) unsafe.Pointer {
	if hasShortest == 0 {
		shortest = 0
	}
	ok, problem := count(input, uint16(shortest), letters(lettersCase))
	if problem != nil {
		failed.isErr, failed.err = 1, *problem
		return unsafe.Pointer(&failed)
	}
	counted.ok = ok
	return unsafe.Pointer(&counted)
}

//go:wasmexport example:words/text@0.1.0#most-frequent
func exportMostFrequent(input string, limit uint32) unsafe.Pointer {
	words := mostFrequent(input, uint8(limit))
	items := make([]item, len(words))
	for i, word := range words {
		items[i] = item{stringAddress(word.word), uint32(len(word.word)), word.times}
	}
	kept = []any{words, items}
	list.address, list.length = address(unsafe.Pointer(unsafe.SliceData(items))), uint32(len(items))
	return unsafe.Pointer(&list)
}

//go:wasmexport example:words/text@0.1.0#checksum
func exportChecksum(data *byte, length uint32) uint32 { return checksum(unsafe.Slice(data, length)) }

//go:wasmexport example:words/text@0.1.0#read
func exportRead(path string) unsafe.Pointer {
	answer, err := read(path)
	text.isErr = 0
	if err != nil {
		text.isErr, answer = 1, err.Error()
	}
	kept = answer
	text.address, text.length = stringAddress(answer), uint32(len(answer))
	return unsafe.Pointer(&text)
}

func main() {}

// Typed tools in Go: the functions. component.go converts their arguments and results; the contract is
// ../../wit/words.wit.
package main

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"sort"
	"strings"
	"unicode/utf8"
)

const maxCharacters = 100_000

// isSpace reports ASCII white space.
func isSpace(char rune) bool { return char == ' ' || char >= '\t' && char <= '\r' }

// lower converts only A to Z.
func lower(text string) string {
	return strings.Map(func(char rune) rune {
		if char >= 'A' && char <= 'Z' {
			return char + 'a' - 'A'
		}
		return char
	}, text)
}

// tally counts each word of a text, in the order of their first appearance.
func tally(text string, shortest uint16) []frequency {
	var all []frequency
	index := map[string]int{}
	for _, word := range strings.FieldsFunc(text, isSpace) {
		if utf8.RuneCountInString(word) < int(shortest) {
			continue
		}
		at, known := index[word]
		if !known {
			at = len(all)
			index[word] = at
			all = append(all, frequency{word: word})
		}
		all[at].times++
	}
	return all
}

func count(text string, shortest uint16, letters letters) (counts, *problem) {
	if length := utf8.RuneCountInString(text); length > maxCharacters {
		return counts{}, &problem{reason: tooLong, characters: uint32(length)}
	}
	if letters == lowered {
		text = lower(text)
	}
	all := tally(text, shortest)
	if len(all) == 0 {
		return counts{}, &problem{reason: noWords}
	}
	counted := counts{distinct: uint32(len(all))}
	for _, word := range all {
		counted.words += word.times
	}
	return counted, nil
}

func mostFrequent(text string, limit uint8) []frequency {
	all := tally(lower(text), 0)
	sort.SliceStable(all, func(a, b int) bool { return all[a].times > all[b].times })
	return all[:min(len(all), int(limit))]
}

func checksum(data []byte) uint32 { return crc32.ChecksumIEEE(data) }

func read(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, errors.Unwrap(err))
	}
	if !utf8.Valid(data) {
		return "", fmt.Errorf("%s: not UTF-8", path)
	}
	return string(data), nil
}

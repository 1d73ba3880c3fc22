// Command tool in Go: JSON arguments on standard input, one line of JSON on standard output. Compiled for WASI it is a tool
// without further steps; compiled natively it is a program that runs in any shell.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// arguments of the call. An unknown field is an error.
type arguments struct {
	Text  string `json:"text"`
	Lower bool   `json:"lower"`
}

// counts is the answer.
type counts struct {
	Words    int `json:"words"`
	Distinct int `json:"distinct"`
}

func count(args arguments) counts {
	text := args.Text
	if args.Lower {
		text = strings.ToLower(text)
	}
	words := strings.Fields(text)
	distinct := map[string]bool{}
	for _, word := range words {
		distinct[word] = true
	}
	return counts{len(words), len(distinct)}
}

// fail prints the error as one line on standard error and exits with 1.
func fail(err error) {
	json.NewEncoder(os.Stderr).Encode(map[string]string{"error": err.Error()})
	os.Exit(1)
}

func main() {
	var args arguments
	input := json.NewDecoder(os.Stdin)
	input.DisallowUnknownFields()
	if err := input.Decode(&args); err != nil {
		fail(fmt.Errorf("the arguments: %w", err))
	}
	if err := json.NewEncoder(os.Stdout).Encode(count(args)); err != nil {
		fail(err)
	}
}

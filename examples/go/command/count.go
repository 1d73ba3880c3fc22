// A tool as a plain program in Go: JSON arguments on standard input, one line of JSON on standard output. It needs no
// component: compiled for WASI it is a tool as it is, and without it a program to try in any shell.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// What the call says. A field that it does not have is an error.
type arguments struct {
	Text  string `json:"text"`
	Lower bool   `json:"lower"`
}

// What the program answers.
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

// fail ends the program with one line on standard error that says what is wrong.
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

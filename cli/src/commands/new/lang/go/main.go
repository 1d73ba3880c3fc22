// The tool: JSON arguments on standard input, one line of JSON on standard output. tools.json states its arguments.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

type arguments struct {
	Name string `json:"name"`
}

func greet(args arguments) (string, error) {
	if args.Name == "" {
		return "", errors.New("the name is empty")
	}
	return "hello, " + args.Name, nil
}

// fail prints the error as one line on standard error and exits with 1.
func fail(err error) {
	json.NewEncoder(os.Stderr).Encode(map[string]string{"error": err.Error()})
	os.Exit(1)
}

func main() {
	var args arguments
	if err := json.NewDecoder(os.Stdin).Decode(&args); err != nil {
		fail(fmt.Errorf("the arguments: %w", err))
	}
	answer, err := greet(args)
	if err != nil {
		fail(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
		fail(err)
	}
}

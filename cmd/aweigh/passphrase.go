package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/internal/home"
	"github.com/aweigh/aweigh/internal/show"
)

// maxPassphrase bounds a passphrase, in bytes.
const maxPassphrase = 4096

// passphraseFlag adds where a passphrase comes from, if not from the terminal.
func passphraseFlag(c *cobra.Command) *string {
	return c.Flags().String("passphrase-file", "", "read the passphrase from this file's first line, and not from the terminal; -: from standard input")
}

// passphrase reads one from a file or, without a file, from the terminal.
func (a *app) passphrase(ctx context.Context, file string, prompts ...string) (string, error) {
	if file != "" {
		return a.passphraseIn(file)
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return "", fmt.Errorf("no terminal to ask for the passphrase; give it with --passphrase-file: %w", err)
	}
	defer tty.Close()
	var first string
	for i, prompt := range prompts {
		text, err := ask(ctx, tty, prompt)
		if err != nil {
			return "", err
		}
		if i > 0 && text != first {
			return "", errors.New("the two passphrases differ; nothing was written")
		}
		first = text
	}
	return first, nil
}

func (a *app) passphraseIn(file string) (string, error) {
	in := a.in
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return "", err
		}
		defer f.Close()
		a.warnExposed(file)
		in = f
	}
	line, err := bufio.NewReader(io.LimitReader(in, maxPassphrase)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// warnExposed warns, once, of a file of a secret that other users can read.
func (a *app) warnExposed(file string) {
	if text := home.Exposed(file); text != "" && !slices.Contains(a.exposed, file) {
		a.exposed = append(a.exposed, file)
		fmt.Fprintf(a.err, "aweigh: warning: %s\n", show.Line(text))
	}
}

// ask reads a line from a terminal that does not show it.
func ask(ctx context.Context, tty *os.File, prompt string) (string, error) {
	fmt.Fprint(tty, prompt)
	if err := stty(tty, "-echo"); err != nil {
		return "", fmt.Errorf("the terminal would show the passphrase; give it with --passphrase-file: %w", err)
	}
	defer func() {
		_ = stty(tty, "echo")
		fmt.Fprintln(tty)
	}()
	type answer struct {
		line string
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		line, err := bufio.NewReaderSize(tty, maxPassphrase).ReadString('\n')
		answered <- answer{strings.TrimRight(line, "\r\n"), err}
	}()
	select {
	case got := <-answered:
		return got.line, got.err
	case <-ctx.Done(): // the program ends, and the read with it
		return "", errors.New("interrupted; nothing was written or signed")
	}
}

// stty changes a terminal.
func stty(tty *os.File, setting string) error {
	c := exec.Command("stty", setting)
	c.Stdin = tty
	return c.Run()
}

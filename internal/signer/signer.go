// Package signer makes signatures with keys that are kept elsewhere: by an ssh-agent, or by
// a program that uses a card, a security module or another machine. A program is called twice:
//
//	PROGRAM [ARGUMENT…] public    writes the public key, as "ed25519:base64url"
//	PROGRAM [ARGUMENT…] sign      reads the message, and writes the signature
//
// Standard input of "sign" is the message, exactly; its standard output is the
// signature, exactly: 64 bytes for Ed25519, 114 for Ed448, 3309 for ML-DSA-65. What
// the program writes to standard error reaches the user, and so does the terminal, to
// ask for a PIN. An exit code other than 0 means that nothing was signed.
package signer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/aweigh/aweigh/votes"
)

// ErrProgram is wrapped by errors about the program.
var ErrProgram = errors.New("signer: the signing program failed")

// most bounds what a program may write, in bytes.
const most = 16 << 10

// Program is a votes.Signer that runs a program. Its signatures are as good as the
// program: callers verify them, as votes.SignMotionBallot does.
type Program struct {
	ctx  context.Context
	args []string
	key  votes.PublicKey
	err  io.Writer
}

// Open asks the program of a command line for its key. The words of the line are
// separated by spaces; no shell reads it. The context bounds all that the program
// does.
func Open(ctx context.Context, line string, messages io.Writer) (*Program, error) {
	p := &Program{ctx: ctx, args: strings.Fields(line), err: messages}
	if len(p.args) == 0 {
		return nil, fmt.Errorf("%w: no program is named", ErrProgram)
	}
	out, err := p.run("public", nil)
	if err != nil {
		return nil, err
	}
	if p.key, err = votes.ParsePublicKey(strings.TrimSpace(string(out))); err != nil {
		return nil, fmt.Errorf("%w: %s public: %w", ErrProgram, p.args[0], err)
	}
	return p, nil
}

// Public implements votes.Signer.
func (p *Program) Public() votes.PublicKey { return p.key }

// SignMessage implements votes.Signer.
func (p *Program) SignMessage(message []byte) ([]byte, error) { return p.run("sign", message) }

func (p *Program) run(what string, in []byte) ([]byte, error) {
	args := append(append([]string(nil), p.args[1:]...), what)
	c := exec.CommandContext(p.ctx, p.args[0], args...)
	out := &bounded{}
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(in), out, p.err
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s %s: %w", ErrProgram, p.args[0], what, err)
	}
	if out.over {
		return nil, fmt.Errorf("%w: %s %s wrote more than %d bytes", ErrProgram, p.args[0], what, most)
	}
	return out.Bytes(), nil
}

// bounded keeps the first bytes that are written.
type bounded struct {
	bytes.Buffer
	over bool
}

func (b *bounded) Write(data []byte) (int, error) {
	room := max(0, most-b.Len())
	b.over = b.over || len(data) > room
	b.Buffer.Write(data[:min(room, len(data))])
	return len(data), nil
}

// Package wysiwys renders content before it is signed, so that what you see is what you
// sign (WYSIWYS: Landrock and Pedersen, 1998). A form has every field of a value, because
// it is made by reflection; a zero field is left out, and reads back as zero. Before a
// tool signs or approves, it renders the content, reads the text back, and compares the
// encodings: a program that cannot show a part of a value refuses to sign it. The text that
// it reads back is the one that it prints.
package wysiwys

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/scope"
)

// ErrHidden is wrapped if this program cannot show the content to sign in full, as with
// a field of a newer version.
var ErrHidden = errors.New("wysiwys: this version of aweigh cannot show the content to sign in full, so it is not signed; " +
	"use the version that proposed it, or ask its author")

// Shown is a value that was rendered, and whose renderings give the value back.
type Shown struct {
	text string
	// Full is for programs: policies stand in it with all that they have.
	Full Form
}

// Text is for people: policies stand in it as differences to one that is known. This very text was read back. Of the
// value of a long put it has the digest, which was compared; it has all else in full.
func (s *Shown) Text() string { return s.text }

// Decision reads the encoding of a decision and renders it. A policy that it sets is
// rendered as its difference to the one in force, if that is given.
func Decision(raw []byte, inForce *scope.Policy) (*scope.Decision, *Shown, error) {
	d := new(scope.Decision)
	if err := canon.Decode(raw, d); err != nil {
		return nil, nil, fmt.Errorf("%w: a decision: %w", ErrHidden, err)
	}
	if err := d.Check(); err != nil {
		return nil, nil, fmt.Errorf("%w: a decision: %w", ErrHidden, err)
	}
	shown, err := check(raw, d, inForce, func() any { return new(scope.Decision) })
	return d, shown, err
}

// Mutation reads the encoding of a mutation and renders it with its content.
func Mutation(raw []byte, inForce *scope.Policy) (*scope.Mutation, *Shown, error) {
	m, err := scope.OpenMutation(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: a mutation: %w", ErrHidden, err)
	}
	shown, err := check(raw, &m.Mutation, inForce, func() any { return new(scope.Mutation) })
	return &m.Mutation, shown, err
}

// Motion renders a motion as it opened, with its mutation.
func Motion(mo *scope.Motion, inForce *scope.Policy) (*Shown, error) {
	if _, err := scope.OpenMutation(mo.Mutation); err != nil {
		return nil, fmt.Errorf("%w: a mutation: %w", ErrHidden, err)
	}
	return check(canon.Encode(*mo), mo, inForce, func() any { return new(scope.Motion) })
}

// check renders a value in all forms, and reads each back.
func check(raw []byte, v any, inForce *scope.Policy, empty func() any) (*Shown, error) {
	out := new(Shown)
	for _, r := range []renderer{{inForce: inForce}, {full: true}} {
		form, err := r.render(v)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrHidden, err)
		}
		if out.Full = form; !r.full {
			out.text = form.Text()
		}
		long := make(map[string]string)
		form.digests(long)
		text, err := parseText(form.Text(), long)
		if err == nil {
			err = same(raw, text, r.inForce, empty())
		}
		if err != nil {
			return nil, fmt.Errorf("%w: its text does not give it back: %w", ErrHidden, err)
		}
	}
	data, err := out.Full.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var read Form
	if err = read.UnmarshalJSON(data); err == nil {
		err = same(raw, read, nil, empty())
	}
	if err != nil {
		return nil, fmt.Errorf("%w: its JSON does not give it back: %w", ErrHidden, err)
	}
	return out, nil
}

func same(raw []byte, f Form, inForce *scope.Policy, into any) error {
	if err := f.Read(into, inForce); err != nil {
		return err
	}
	if !bytes.Equal(canon.Encode(into), raw) {
		return errors.New("it stands for something else")
	}
	return nil
}

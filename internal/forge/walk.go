package forge

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Site is a place in a message that an operator may spoil.
type Site struct {
	Path  string // like Finality.Certificate.Signatures[2].Bytes
	Class Class
	Value reflect.Value // can be set

	claim claim
	seals []func() // of the encodings in which it stands, the outermost first
}

// claim is the context of a site: the message that its signature should be on, and the owner
// that it should have.
type claim struct {
	domain  votes.Domain
	subject quorum.Subject
	owner   func() aweigh.Hash             // nil if none is named
	message func() (votes.Context, []byte) // nil if it cannot be told
}

// Message is a copy of a decoded message with the sites in it.
type Message struct {
	Sites   []*Site
	Unknown []string // paths of what has no class
	value   reflect.Value
}

// Open copies a decoded message and finds the sites in it. Leaders propose by their vote of a kind.
func Open(message any, vouch quorum.Kind) *Message {
	v := reflect.ValueOf(message)
	m := &Message{value: reflect.New(v.Type()).Elem()}
	m.value.Set(deepCopy(v))
	w := walker{m: m, vouch: vouch}
	w.walk(m.value, "", "", claim{}, nil)
	return m
}

// Content is the message as it is now.
func (m *Message) Content() any { return m.value.Interface() }

// Only leaves the sites in one field of the message, and the field itself.
func (m *Message) Only(field string) {
	m.Sites = slices.DeleteFunc(m.Sites, func(s *Site) bool { return s.Path != field && !strings.HasPrefix(s.Path, field+".") })
}

var index = regexp.MustCompile(`\[\d+\]`)

// Place is the site's path without numbers: that of all elements of a list.
func (s *Site) Place() string { return index.ReplaceAllString(s.Path, "[]") }

// sealed encodes again what the site stands in.
func (s *Site) sealed() {
	for i := len(s.seals) - 1; i >= 0; i-- {
		s.seals[i]()
	}
}

type walker struct {
	m     *Message
	vouch quorum.Kind
}

// walk looks at a value. field names the struct and the field in which it stands.
func (w *walker) walk(v reflect.Value, path, field string, c claim, seals []func()) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	class := classOf(v.Type(), field)
	bytes := v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8
	switch {
	case v.Kind() == reflect.Slice && !bytes:
		w.site(path, List, v, c, seals)
		for i := range v.Len() {
			w.walk(v.Index(i), fmt.Sprintf("%s[%d]", path, i), field, c, seals)
		}
		if v.Len() == 0 { // what it might hold is classified as well
			w.known(classOf(v.Type().Elem(), field), path)
		}
		return
	case !w.known(class, path):
		return
	}
	c = w.around(v, c)
	w.site(path, class, v, c, seals)
	if f, encoded := forms[class]; encoded {
		inner, err := f.open(v.Bytes())
		if err != nil {
			return
		}
		outer := append(seals[:len(seals):len(seals)], func() { v.SetBytes(f.seal(inner)) })
		w.walk(reflect.ValueOf(inner).Elem(), path, "", c, outer)
		return
	}
	if v.Kind() != reflect.Struct || !whole[class] {
		return
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		below := f.Name
		if path != "" {
			below = path + "." + f.Name
		}
		w.walk(v.Field(i), below, v.Type().String()+"."+f.Name, c, seals)
	}
}

func (w *walker) site(path string, class Class, v reflect.Value, c claim, seals []func()) {
	if class.proves() {
		w.m.Sites = append(w.m.Sites, &Site{Path: path, Class: class, Value: v, claim: c, seals: seals})
	}
}

func (w *walker) known(class Class, path string) bool {
	if class == "" {
		w.m.Unknown = append(w.m.Unknown, path)
	}
	return class != ""
}

// around is the claim within a value: its domain, subject and owner.
func (w *walker) around(v reflect.Value, c claim) claim {
	if v.Kind() != reflect.Struct {
		return c
	}
	if h, ok := fieldOf[scope.Header](v, "Header"); ok {
		c.domain, c.subject = h.Domain(), quorum.Subject{Kind: quorum.Finalize, View: h.View, Block: h.Hash()}
		if v.Type().String() == "machine.Proposal" {
			c.subject.Kind = w.vouch
			c.owner = func() aweigh.Hash { return h.Proposer }
		}
	}
	if d, ok := fieldOf[votes.Domain](v, "Domain"); ok {
		c.domain = d
	}
	if s, ok := fieldOf[quorum.Subject](v, "Subject"); ok {
		c.subject = s
	}
	if _, ok := fieldOf[aweigh.Hash](v, "Anchor"); ok {
		c.owner = func() aweigh.Hash { return v.FieldByName("Anchor").Interface().(aweigh.Hash) }
	}
	at := c
	c.message = func() (votes.Context, []byte) {
		b := votes.Ballot{Format: scope.Format, Domain: at.domain, Subject: at.subject}
		if at.owner != nil {
			b.Anchor = at.owner()
		}
		return votes.ContextBallot, b.SigningBytes()
	}
	switch x := v.Addr().Interface().(type) {
	case *votes.MotionBallot:
		c.owner = func() aweigh.Hash { return x.Voter }
		c.message = func() (votes.Context, []byte) { return votes.ContextCOSE, x.SigningBytes() }
	case *scope.Bundle:
		c.owner = func() aweigh.Hash { return x.Author.ID() }
		c.message = func() (votes.Context, []byte) {
			id := BundleID(*x)
			return votes.ContextBundle, id[:]
		}
	}
	return c
}

// BundleID is the hash that the author of a bundle signs; zero if it is not a bundle.
func BundleID(b scope.Bundle) aweigh.Hash {
	c, err := scope.CheckBundle(canon.Encode(b), scope.MostLimits(), Trusting)
	if err != nil {
		return aweigh.Hash{}
	}
	return c.ID()
}

// Trusting is a votes.Verifier that takes every signature.
func Trusting(votes.PublicKey, votes.Context, []byte, []byte) error { return nil }

func fieldOf[T any](v reflect.Value, name string) (x T, ok bool) {
	f := v.FieldByName(name)
	if !f.IsValid() {
		return x, false
	}
	x, ok = f.Interface().(T)
	return x, ok
}

// deepCopy is a copy that shares nothing with v.
func deepCopy(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			c.Set(reflect.New(v.Type().Elem()))
			c.Elem().Set(deepCopy(v.Elem()))
		}
	case reflect.Slice:
		if v.IsNil() || v.Len() == 0 {
			break
		}
		c.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		if v.Type().Elem().Kind() == reflect.Uint8 {
			reflect.Copy(c, v)
			break
		}
		for i := range v.Len() {
			c.Index(i).Set(deepCopy(v.Index(i)))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				c.Field(i).Set(deepCopy(v.Field(i)))
			}
		}
	}
	return c
}

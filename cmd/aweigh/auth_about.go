package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// What a question about rights is about: a verb, a key with its names, the scope that decides, and an author.

// knownVerb refuses a verb about which the policy of a scope says nothing.
func knownVerb(verb string, p *scope.Policy) error {
	if err := policytext.CheckVerb(verb, p.Actions); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return nil
}

// judgedKey is the key of a question.
func judgedKey(text string) ([]byte, error) { return keyOf(text, false, "") }

// namesOf are the names of the object that a key names, the key first: a change under one of them changes all.
func (s *session) namesOf(ctx context.Context, key []byte) ([][]byte, error) {
	names := [][]byte{key}
	r, err := s.Client.Resolve(ctx, &aweighv1.ResolveRequest{Key: key})
	if errors.Is(err, client.ErrNotFound) || err == nil && r.Moved != nil {
		return names, nil
	}
	if err != nil {
		return nil, err
	}
	o, err := s.Client.Object(ctx, &aweighv1.ObjectRequest{Uid: r.Uid, Limit: 1})
	if err != nil {
		return nil, err
	}
	for _, name := range o.Aliases {
		if !bytes.Equal(name, key) {
			names = append(names, name)
		}
	}
	return names, nil
}

// whereDecided is a session with the scope that decides about a key.
func (s *session) whereDecided(ctx context.Context, key []byte) (*session, *aweighv1.Scope, error) {
	all, err := s.Client.Scopes(ctx)
	if err != nil {
		return nil, nil, err
	}
	x := deciding(all, key, false)
	if x == nil {
		return nil, nil, fmt.Errorf("%w: the node returned no scope", errAbsent)
	}
	in := *s
	in.Client, in.in = s.Client.In(inScope(x)), inScope(x)
	return &in, x, nil
}

// author is the hash of the key of an author: of an entry, an anchor's node, or a key. Without a text it is nil, which
// means the node that answers.
func (s *session) author(ctx context.Context, p *scope.Policy, text string) ([]byte, error) {
	entry := -1
	for i := range p.Authors {
		switch e := &p.Authors[i]; {
		case e.Name != text:
		case e.Who == scope.OneKey:
			id := e.Key.ID()
			return id[:], nil
		default:
			entry = i
		}
	}
	if key, err := votes.ParsePublicKey(text); err == nil {
		id := key.ID()
		return id[:], nil
	}
	id, err := s.callerOf(ctx, text)
	if entry >= 0 && errors.Is(err, errAbsent) {
		return nil, fmt.Errorf("%w: the entry %s is about %s; give the name or the key of one author", errUsage, text, p.Authors[entry].Who)
	}
	return id, err
}

// callerIn is the hash of the key in a file, for a text that names nothing else. absent is the error if it names no
// file either.
func (a *app) callerIn(ctx context.Context, file, passphraseFile string, absent error) ([]byte, error) {
	key, there, err := a.publicKeyIn(ctx, file, passphraseFile)
	if err == nil && !there {
		err = absent
	}
	if err != nil {
		return nil, err
	}
	id := key.ID()
	return id[:], nil
}

// noAuthor is the error of a name that no author has in a policy.
func noAuthor(name string, p *scope.Policy, x *aweighv1.Scope, h *aweighv1.Header) error {
	return fmt.Errorf("%w: policy %.8s of scope %s, epoch %d, revision %d, has no author %s: no entry has this name (\"aweigh auth ls\" lists them), "+
		"no anchor (\"aweigh anchor ls\") has it or an ID that begins so, and it is no key and no file of one",
		errAbsent, p.Hash().String(), show.ScopeName(x), h.GetEpoch(), h.GetRevision(), show.Word(name))
}

// anchorNames are the names of the anchors of the roster, by their keys and those of their nodes.
func anchorNames(r *aweighv1.TrustResponse) map[aweigh.Hash]string {
	names := make(map[aweigh.Hash]string)
	for _, x := range r.Anchors {
		if !inRoster(x) {
			continue
		}
		if len(x.Id) == len(aweigh.Hash{}) {
			names[aweigh.Hash(x.Id)] = x.Name
		}
		if node, ok := scope.PeerKey(x.Peer); ok {
			names[node.ID()] = x.Name
		}
	}
	return names
}

// anchorIn reports whether a key is that of an anchor of the roster, or of its node.
func anchorIn(r *aweighv1.TrustResponse, id aweigh.Hash) bool {
	return slices.ContainsFunc(r.Anchors, func(x *aweighv1.Standing) bool {
		node, ok := scope.PeerKey(x.Peer)
		return inRoster(x) && (bytes.Equal(x.Id, id[:]) || ok && node.ID() == id)
	})
}

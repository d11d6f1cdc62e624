package signer

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/votes"
)

// serveAgent serves an agent at SSH_AUTH_SOCK until the test ends.
func serveAgent(t *testing.T, held agent.Agent) {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent") // t.TempDir may be longer than the address of a socket
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(agentSocket, listener.Addr().String())
	t.Cleanup(func() {
		listener.Close()
		os.RemoveAll(dir)
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_ = agent.ServeAgent(held, conn)
			}()
		}
	}()
}

func addKey(t *testing.T, held agent.Agent, key any, comment string) {
	t.Helper()
	if err := held.Add(agent.AddedKey{PrivateKey: key, Comment: comment}); err != nil {
		t.Fatal(err)
	}
}

// addNewKey adds a key of Ed25519.
func addNewKey(t *testing.T, held agent.Agent, comment string) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	addKey(t, held, key, comment)
}

// bent is an agent that changes its signatures.
type bent struct {
	agent.ExtendedAgent
	bend func(*ssh.Signature)
}

func (b bent) SignWithFlags(key ssh.PublicKey, data []byte, flags agent.SignatureFlags) (*ssh.Signature, error) {
	s, err := b.ExtendedAgent.SignWithFlags(key, data, flags)
	if err == nil {
		b.bend(s)
	}
	return s, err
}

// fingerprint is that of the first key of Ed25519.
func fingerprint(t *testing.T, held agent.Agent) string {
	t.Helper()
	all, err := held.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range all {
		if k.Type() == ssh.KeyAlgoED25519 {
			return ssh.FingerprintSHA256(k)
		}
	}
	t.Fatal("no key of Ed25519")
	return ""
}

// TestAgentSigns: a key is found by each of its names, and its signatures are those of the private key.
func TestAgentSigns(t *testing.T) {
	ring := agent.NewKeyring()
	serveAgent(t, ring)
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = 7
	addKey(t, ring, ed25519.NewKeyFromSeed(seed), "alice@laptop")
	own, err := votes.KeyFromSeed(votes.Ed25519, seed)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	addKey(t, ring, other, "alice@laptop") // of another scheme, which is not in the way
	for _, name := range []string{"", "alice@laptop", fingerprint(t, ring), own.Public().String()} {
		a, err := OpenAgent(t.Context(), name)
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		if a.Public().ID() != own.Public().ID() {
			t.Fatalf("%q: the key is %s", name, a.Public())
		}
		for _, c := range []votes.Context{votes.ContextBundle, votes.ContextGrant, votes.ContextCOSE} {
			signature, err := votes.SignWith(a, c, []byte("message"))
			if err != nil {
				t.Fatalf("%q: %v", name, err)
			}
			if want := own.Sign(c, []byte("message")); string(signature) != string(want) {
				t.Errorf("%q: in context %q, the signature differs from the private key's", name, c)
			}
		}
	}
}

// TestAgentErrors: each error says what to do.
func TestAgentErrors(t *testing.T) {
	refused := func(name, want string) {
		t.Helper()
		_, err := OpenAgent(t.Context(), name)
		if !errors.Is(err, ErrAgent) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
	t.Setenv(agentSocket, "")
	refused("", `SSH_AUTH_SOCK is not set`)
	t.Setenv(agentSocket, filepath.Join(t.TempDir(), "none"))
	refused("", "does not answer")
	ring := agent.NewKeyring()
	serveAgent(t, ring)
	refused("", "holds no key of type ssh-ed25519, or is locked")
	addNewKey(t, ring, "alice")
	addNewKey(t, ring, "alice")
	refused("bob", `holds no key "bob"; it holds "alice" (SHA256:`)
	refused("alice", "name one by its fingerprint")
	refused("", "name one by its fingerprint")
	a, err := OpenAgent(t.Context(), fingerprint(t, ring))
	if err != nil {
		t.Fatal(err)
	}
	if err := ring.RemoveAll(); err != nil {
		t.Fatal(err)
	}
	if _, err := votes.SignWith(a, votes.ContextBundle, nil); !errors.Is(err, ErrAgent) || !strings.Contains(err.Error(), "declined") {
		t.Errorf("a key that was removed: %v", err)
	}
}

// TestAgentsThatSignSomethingElse: a signature of other bytes, or in another format, is not used.
func TestAgentsThatSignSomethingElse(t *testing.T) {
	for what, bend := range map[string]func(*ssh.Signature){
		"another message": func(s *ssh.Signature) { s.Blob[0] ^= 1 },
		"another format":  func(s *ssh.Signature) { s.Format = "ssh-ed448" },
		"a short one":     func(s *ssh.Signature) { s.Blob = s.Blob[:10] },
	} {
		t.Run(what, func(t *testing.T) {
			ring := agent.NewKeyring().(agent.ExtendedAgent)
			serveAgent(t, bent{ring, bend})
			addNewKey(t, ring, "")
			a, err := OpenAgent(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			if signature, err := votes.SignWith(a, votes.ContextBundle, []byte("x")); err == nil {
				t.Errorf("taken: %x", signature)
			}
		})
	}
}

// waiting is an agent that signs when a person says so, which does not happen.
type waiting struct {
	agent.ExtendedAgent
	asked chan struct{}
}

func (w waiting) SignWithFlags(ssh.PublicKey, []byte, agent.SignatureFlags) (*ssh.Signature, error) {
	<-w.asked
	return nil, errors.New("declined")
}

// TestSignaturesWaitNoLongerThanTheirContext, however long the agent asks a person.
func TestSignaturesWaitNoLongerThanTheirContext(t *testing.T) {
	ring := waiting{agent.NewKeyring().(agent.ExtendedAgent), make(chan struct{})}
	defer close(ring.asked)
	serveAgent(t, ring)
	addNewKey(t, ring, "")
	a, err := OpenAgent(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := votes.SignWith(a.In(ctx), votes.ContextBundle, []byte("x"))
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	case <-time.After(testwait.Patience):
		t.Error("it still waits")
	}
}

// twice is an agent that lists each key twice.
type twice struct{ agent.ExtendedAgent }

func (w twice) List() ([]*agent.Key, error) {
	all, err := w.ExtendedAgent.List()
	return append(all, all...), err
}

// TestKeysThatAreListedTwiceAreOne, so that their fingerprint names them.
func TestKeysThatAreListedTwiceAreOne(t *testing.T) {
	ring := twice{agent.NewKeyring().(agent.ExtendedAgent)}
	serveAgent(t, ring)
	addNewKey(t, ring, "alice")
	for _, name := range []string{"", "alice", fingerprint(t, ring)} {
		if _, err := OpenAgent(t.Context(), name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestAgentThatHangs ends with its context.
func TestAgentThatHangs(t *testing.T) {
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Skip(err)
	}
	defer listener.Close()
	t.Setenv(agentSocket, listener.Addr().String())
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if conn, err := listener.Accept(); err == nil {
			cancel()
			defer conn.Close()
			<-t.Context().Done()
		}
	}()
	if _, err := OpenAgent(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

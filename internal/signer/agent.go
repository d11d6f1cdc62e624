package signer

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/aweigh/aweigh/votes"
)

// ErrAgent is wrapped by errors about the ssh-agent.
var ErrAgent = errors.New("signer: the ssh-agent")

// ErrNoKey is wrapped where there is no agent, or not one key of the name. It wraps ErrAgent.
var ErrNoKey = fmt.Errorf("%w", ErrAgent)

// agentSocket is the environment variable with the address of the agent's Unix socket.
const agentSocket = "SSH_AUTH_SOCK"

// Agent is a votes.Signer with a key of Ed25519 that an ssh-agent holds (RFC draft-miller-ssh-agent, sections 3.5 and
// 3.6). The agent signs a message as it is, so that its signatures are those of the same private key anywhere. An agent
// that forwards another machine's, or that asks a person before it signs, is as good. Keys of other schemes, of
// certificates and of security keys (sk-ssh-ed25519, which sign more than the message) are not used.
type Agent struct {
	ctx     context.Context
	address string
	key     votes.PublicKey
	held    ssh.PublicKey
}

// In is the same key, of which the context bounds what the agent does.
func (a *Agent) In(ctx context.Context) *Agent {
	b := *a
	b.ctx = ctx
	return &b
}

// OpenAgent finds a key of the agent at SSH_AUTH_SOCK by its comment, its SHA256 fingerprint or its public key, as
// "ed25519:base64url"; "" finds the only one. The context bounds all that the agent does.
func OpenAgent(ctx context.Context, name string) (*Agent, error) {
	a := &Agent{ctx: ctx, address: os.Getenv(agentSocket)}
	if a.address == "" {
		return nil, fmt.Errorf("%w is not there: %s is not set; start one (eval \"$(ssh-agent)\"), and add a key (ssh-add)",
			ErrNoKey, agentSocket)
	}
	var all []*agent.Key
	if err := a.ask(func(c agent.ExtendedAgent) (err error) {
		all, err = c.List()
		return err
	}); err != nil {
		return nil, err
	}
	var usable, found []*agent.Key
	for _, k := range all {
		held, public, err := agentKey(k)
		if err != nil || slices.ContainsFunc(usable, func(u *agent.Key) bool { return bytes.Equal(u.Blob, k.Blob) }) {
			continue
		}
		usable = append(usable, k)
		if name == "" || slices.Contains([]string{k.Comment, ssh.FingerprintSHA256(held), public.String()}, name) {
			found = append(found, k)
			a.held, a.key = held, public
		}
	}
	switch {
	case len(usable) == 0:
		return nil, fmt.Errorf("%w holds no key of type ssh-ed25519, or is locked; add one: ssh-add FILE", ErrNoKey)
	case len(found) == 0:
		return nil, fmt.Errorf("%w holds no key %q; it holds %s", ErrNoKey, name, describe(usable))
	case len(found) > 1:
		return nil, fmt.Errorf("%w holds several such keys; name one by its fingerprint: %s", ErrNoKey, describe(found))
	}
	return a, nil
}

// agentKey is the public key of an agent's key. Keys of other schemes than Ed25519 are an error.
func agentKey(k *agent.Key) (held ssh.PublicKey, key votes.PublicKey, err error) {
	if held, err = ssh.ParsePublicKey(k.Blob); err != nil {
		return nil, key, err
	}
	c, ok := held.(ssh.CryptoPublicKey)
	if !ok || held.Type() != ssh.KeyAlgoED25519 {
		return nil, key, errors.New("not of Ed25519")
	}
	public, ok := c.CryptoPublicKey().(ed25519.PublicKey)
	if !ok {
		return nil, key, errors.New("not of Ed25519")
	}
	key = votes.PublicKey{Scheme: votes.Ed25519, Bytes: public}
	return held, key, key.Check()
}

// mostDescribed bounds the keys that an error names.
const mostDescribed = 8

// describe names keys by their comments and fingerprints.
func describe(keys []*agent.Key) string {
	var all []string
	for i, k := range keys {
		if i == mostDescribed {
			all = append(all, fmt.Sprintf("and %d more", len(keys)-i))
			break
		}
		all = append(all, fmt.Sprintf("%q (%s)", k.Comment, ssh.FingerprintSHA256(k)))
	}
	return strings.Join(all, ", ")
}

// Public implements votes.Signer.
func (a *Agent) Public() votes.PublicKey { return a.key }

// SignMessage implements votes.Signer.
func (a *Agent) SignMessage(message []byte) (signature []byte, err error) {
	err = a.ask(func(c agent.ExtendedAgent) error {
		s, err := c.Sign(a.held, message)
		if err == nil && s.Format != ssh.KeyAlgoED25519 {
			err = fmt.Errorf("it signed with %q", s.Format)
		}
		if err != nil {
			return fmt.Errorf("it did not sign: %w; was the key removed, or the request declined?", err)
		}
		signature = s.Blob
		return nil
	})
	return signature, err
}

// ask connects to the agent, for one request.
func (a *Agent) ask(do func(agent.ExtendedAgent) error) error {
	conn, err := new(net.Dialer).DialContext(a.ctx, "unix", a.address)
	if err != nil {
		return fmt.Errorf("%w does not answer at %s of %s: %w", ErrNoKey, a.address, agentSocket, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(a.ctx, func() { conn.Close() })
	defer stop()
	if err = do(agent.NewClient(conn)); a.ctx.Err() != nil {
		err = a.ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%w at %s: %w", ErrAgent, a.address, err)
	}
	return nil
}

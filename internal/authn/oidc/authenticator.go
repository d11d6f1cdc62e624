package oidc

import (
	"context"
	"crypto"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/authn"
)

// Config states whose tokens are accepted.
type Config struct {
	Network aweigh.NetworkID
	Issuers []Issuer
	// Report, if not nil, gets the state of an issuer after each fetch of its keys.
	Report func(Status)
	// Clock returns the time by this machine's clock. Default: time.Now.
	Clock func() time.Time
	// Passed, if not nil, returns a time that has passed, such as that of the newest final block. Where the clock of
	// this machine is behind it, it counts instead: otherwise tokens would be good after their end.
	Passed func() time.Time
}

// later is a clock that is never behind what has passed.
func (cfg *Config) later(clock func() time.Time) func() time.Time {
	if cfg.Passed == nil {
		return clock
	}
	return func() time.Time {
		now := clock()
		if passed := cfg.Passed(); passed.After(now) {
			return passed
		}
		return now
	}
}

// Authenticator recognizes callers by their tokens. It is an authn.Authenticator.
type Authenticator struct {
	issuers  []*keys
	verdicts *verdicts
	now      func() time.Time
}

var _ authn.Authenticator = (*Authenticator)(nil)

// New returns an authenticator. It asks no issuer: Run does. Errors wrap ErrIssuer.
func New(cfg Config) (*Authenticator, error) {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	return newWith(cfg, usual, cfg.Clock)
}

func newWith(cfg Config, p periods, now func() time.Time) (*Authenticator, error) {
	if err := CheckIssuers(cfg.Issuers); err != nil {
		return nil, err
	}
	a := &Authenticator{verdicts: newVerdicts(), now: cfg.later(now)}
	for _, i := range cfg.Issuers {
		if _, err := HTTPClient(i.CA); err != nil {
			return nil, fmt.Errorf("%w: %q: %w", ErrIssuer, i.URL, err)
		}
		a.issuers = append(a.issuers, newKeys(i.withDefaults(cfg.Network.String()), p, a.verdicts.changed, cfg.Report))
	}
	return a, nil
}

// Run fetches the issuers' keys until ctx ends. An issuer that does not answer is asked again, and stops nothing else.
func (a *Authenticator) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, k := range a.issuers {
		all.Go(func() { k.run(ctx) })
	}
	all.Wait()
}

// Status returns the states of all issuers, in the order of the settings.
func (a *Authenticator) Status() (all []Status) {
	for _, k := range a.issuers {
		all = append(all, k.status())
	}
	return all
}

// Authenticate implements authn.Authenticator. It knows all tokens that are JSON Web Tokens.
func (a *Authenticator) Authenticate(ctx context.Context, r *authn.Request) (authn.Identity, *authn.Refusal) {
	token, refused := r.Token()
	if refused != nil || !authn.IsJWT(token) {
		return authn.Identity{}, refused
	}
	if len(token) > maxToken {
		text := fmt.Sprintf("the token has %d bytes, at most %d are taken", len(token), maxToken)
		return authn.Identity{}, refuse(authn.Oversized, text)
	}
	hash, now := sha256.Sum256([]byte(token)), a.now()
	if id, ok := a.verdicts.get(hash, now); ok {
		return id, nil
	}
	epoch := a.verdicts.epoch.Load()
	id, end, refused := a.examine(ctx, token, now)
	if refused != nil {
		return authn.Identity{}, refused
	}
	a.verdicts.put(hash, id, now, end, epoch)
	return id, nil
}

// examine checks a token: its form, issuer and algorithm, then its signature, then its claims.
func (a *Authenticator) examine(ctx context.Context, token string, now time.Time) (
	id authn.Identity, end time.Time, refused *authn.Refusal,
) {
	u, err := parse(token)
	if err != nil {
		return id, end, refuse(authn.Malformed, "the token is not a JSON Web Token of a type that names a caller")
	}
	n := slices.IndexFunc(a.issuers, func(k *keys) bool { return k.issuer.URL == u.issuer })
	if n < 0 {
		return id, end, refuse(authn.Issuer, "this node takes tokens of "+a.names()+": get one there")
	}
	k := a.issuers[n]
	if !slices.Contains(k.issuer.Algorithms, u.alg) {
		return id, end, refuse(authn.Algorithm, "this node takes tokens of "+k.issuer.URL+" that are signed by "+
			strings.Join(k.issuer.Algorithms, ", ")+" alone")
	}
	claims, refused := k.verify(ctx, token, u)
	if refused != nil {
		return id, end, refused
	}
	return k.issuer.caller(claims, now)
}

func (a *Authenticator) names() string {
	var all []string
	for _, k := range a.issuers {
		all = append(all, k.issuer.URL)
	}
	return strings.Join(all, ", ")
}

// verify checks a token's signature and returns its claims. If no key fits, it looks once whether there are newer ones.
func (k *keys) verify(ctx context.Context, token string, u unverified) (parsed, *authn.Refusal) {
	set := k.current()
	for fresh := false; ; fresh = true {
		found := set.find(u.key, u.alg)
		if len(found) > 0 {
			claims, refused := k.signed(ctx, token, u.alg, found)
			if refused == nil || u.key != "" || fresh {
				return claims, refused
			}
		} else if fresh {
			return nil, refuse(authn.Key, "the token names a key that "+k.issuer.URL+" does not publish: get another")
		}
		newer, err := k.newer(ctx, set)
		switch {
		case errors.Is(err, errSoon) && len(found) > 0:
			return nil, refuse(authn.Signature, "the signature of the token is wrong: get a new token")
		case errors.Is(err, errSoon):
			return nil, refuse(authn.Key, "the token names a key that "+k.issuer.URL+" did not publish when this node "+
				"last asked: try again in "+k.periods.apart.String()+", or get a new token")
		case err != nil:
			return nil, refuse(authn.Unavailable, "this node has no keys of "+k.issuer.URL+" now: try again later")
		}
		set = newer
	}
}

// signed returns the claims of a token that one of some keys has signed by an algorithm.
func (k *keys) signed(ctx context.Context, token, alg string, by []crypto.PublicKey) (claims parsed, _ *authn.Refusal) {
	proof := &proof{StaticKeySet: oidc.StaticKeySet{PublicKeys: by}}
	// The rest is checked by Issuer.caller: the library allows 5 minutes of skew, and ignores the case of names.
	verifier := oidc.NewVerifier(k.issuer.URL, proof, &oidc.Config{
		SupportedSigningAlgs: []string{alg}, SkipClientIDCheck: true, SkipExpiryCheck: true,
	})
	t, err := verifier.Verify(ctx, token)
	switch {
	case err != nil && !proof.holds:
		return nil, refuse(authn.Signature, "the signature of the token is wrong: get a new token")
	case err != nil || t.Claims(&claims) != nil || claims == nil:
		return nil, refuse(authn.Malformed, "the claims of the token are malformed")
	}
	return claims, nil
}

// proof is a set of keys that notes whether one of them has signed.
type proof struct {
	oidc.StaticKeySet
	holds bool
}

// VerifySignature implements oidc.KeySet.
func (p *proof) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := p.StaticKeySet.VerifySignature(ctx, token)
	p.holds = err == nil
	return payload, err
}

package oidc

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aweigh/aweigh/internal/authn"
)

// skew is by how much the clocks of a node and an issuer may differ.
const skew = time.Minute

// mostSeconds bounds times, in seconds since 1970: the year 5138.
const mostSeconds = 1e11

// caller returns the identity that a token's verified claims give, and the time at which the token ends here.
func (i *Issuer) caller(c parsed, now time.Time) (id authn.Identity, end time.Time, refused *authn.Refusal) {
	if iss, err := c.text("iss"); err != nil || iss != i.URL {
		return id, end, refuse(authn.Issuer, "the token is of another issuer than it seems")
	}
	if end, refused = c.times(now); refused != nil {
		return id, end, refused
	}
	if !slices.Contains(c.values("aud"), i.Audience) {
		return id, end, refuse(authn.Audience, "the token is for another audience: get one for "+i.Audience)
	}
	for name, accepted := range i.RequiredClaims {
		if !slices.ContainsFunc(c.values(name), func(v string) bool { return slices.Contains(accepted, v) }) {
			text := fmt.Sprintf("the claim %q of the token has no value that this node takes", name)
			return id, end, refuse(authn.Claims, text)
		}
	}
	if i.NameClaim == "email" && !slices.Equal(c.values("email_verified"), []string{"true"}) {
		return id, end, refuse(authn.Claims, "the issuer does not state that the token's email address is verified")
	}
	name, err := c.text(i.NameClaim)
	if err == nil {
		id, err = authn.NewIdentity(authn.OIDC, i.URL+"#"+name)
	}
	if err != nil {
		return authn.Identity{}, end, refuse(authn.Name, fmt.Sprintf("the claim %q of the token cannot be a name: "+
			"it is missing, not a text, too long, or has a character that cannot be printed", i.NameClaim))
	}
	return id, end, nil
}

// times checks when a token is valid (RFC 7519, sections 4.1.4 to 4.1.6).
func (c parsed) times(now time.Time) (end time.Time, refused *authn.Refusal) {
	var at [3]time.Time
	for n, name := range [...]string{"exp", "nbf", "iat"} {
		raw, ok := c[name]
		if !ok && name != "exp" {
			continue
		}
		var seconds *float64
		if json.Unmarshal(raw, &seconds) != nil || seconds == nil || *seconds <= 0 || *seconds > mostSeconds {
			text := fmt.Sprintf("the claim %q of the token is missing, or not a time", name)
			return end, refuse(authn.Malformed, text)
		}
		at[n] = time.Unix(int64(*seconds), 0)
	}
	if end = at[0].Add(skew); !now.Before(end) {
		return end, refuse(authn.Expired, "the token ended at "+at[0].UTC().Format(time.RFC3339)+
			": get a new one, or check this node's clock")
	}
	for _, from := range at[1:] {
		if from.After(now.Add(skew)) {
			return end, refuse(authn.Early, "the token is valid from "+from.UTC().Format(time.RFC3339)+
				": this node's clock or the issuer's is wrong")
		}
	}
	return end, nil
}

// values returns a claim's value as texts: its members if it is a list, none if it has another type or is missing.
func (c parsed) values(name string) (all []string) {
	raw := c[name]
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	for _, v := range list {
		var s *string
		switch text := strings.TrimSpace(string(v)); {
		case json.Unmarshal(v, &s) == nil && s != nil:
			all = append(all, *s)
		case text != "" && text != "null" && !strings.ContainsAny(text[:1], `"[{`):
			all = append(all, text)
		}
	}
	return all
}

func refuse(r authn.Reason, text string) *authn.Refusal {
	return &authn.Refusal{Kind: authn.OIDC, Reason: r, Text: text}
}

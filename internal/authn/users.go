package authn

import (
	"context"
	"errors"
)

// Users recognizes users of etcd's API by their tokens: it returns the user that a token names. It gets each token that
// is not a JSON Web Token. An error that wraps a Refusal becomes the refusal of the request. Any other error means that
// the token is not valid, and its text is dropped.
type Users func(ctx context.Context, token string) (name string, err error)

// Authenticate implements Authenticator.
func (u Users) Authenticate(ctx context.Context, r *Request) (Identity, *Refusal) {
	token, refused := r.Token()
	if token == "" || IsJWT(token) || refused != nil {
		return Identity{}, refused
	}
	name, err := u(ctx, token)
	if err != nil {
		if errors.As(err, &refused) {
			return Identity{}, refused
		}
		return Identity{}, &Refusal{User, Invalid, "the token ended, or its user changed: authenticate again"}
	}
	id, err := NewIdentity(User, name)
	if err != nil {
		return Identity{}, &Refusal{User, Name, "the name of the user cannot be an identity: " +
			"make a user with a short name of printable characters"}
	}
	return id, nil
}

package authn

import "google.golang.org/grpc/codes"

// Reason is a class of reasons to refuse a request's credential. There are few, so that they can be counted.
type Reason uint8

// The reasons. Accepted counts requests that were not refused.
const (
	Accepted    Reason = iota
	Missing            // no credential, on a port that requires one
	Unknown            // a credential that no authenticator of the port knows
	Oversized          // a token longer than any that is taken
	Malformed          // not a token, or several tokens at once
	Algorithm          // a token that is signed by none of the issuer's permitted algorithms
	Issuer             // a token of another issuer
	Key                // a token signed by a key that the issuer does not publish
	Signature          // a token whose signature is wrong
	Audience           // a token for another network
	Expired            // a token that has ended
	Early              // a token that is not valid yet
	Claims             // a token without a required claim
	Name               // a name that cannot be an identity
	Invalid            // another credential that is not valid
	Unavailable        // a token that cannot be checked now: the issuer's keys are not here
	Host               // whatever the credential: the request names a host that the port does not answer to
	Origin             // whatever the credential: a web page of another host makes the request

	Reasons // the number of reasons
)

var reasonNames = [Reasons]string{
	"accepted", "missing", "unknown", "oversized", "malformed", "algorithm", "issuer", "key", "signature", "audience",
	"expired", "early", "claims", "name", "invalid", "unavailable", "host", "origin",
}

// String returns the reason in a word.
func (r Reason) String() string {
	if r >= Reasons {
		return "unknown"
	}
	return reasonNames[r]
}

// Refusal is the error of a request whose caller is not recognized. Its text holds the reason and what to do, and
// nothing of the credential.
type Refusal struct {
	Kind   Kind // of the credential; None if there is none, or its kind is not known
	Reason Reason
	Text   string
}

// Error implements error.
func (r *Refusal) Error() string { return "authn: " + r.Text }

// Code is the code of the refusal in gRPC and Connect: Unavailable if the same request may succeed later, otherwise
// Unauthenticated.
func (r *Refusal) Code() codes.Code {
	if r.Reason == Unavailable {
		return codes.Unavailable
	}
	return codes.Unauthenticated
}

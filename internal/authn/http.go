package authn

import (
	"net/http"

	"connectrpc.com/connect"
)

// Middleware returns a handler that puts the identity of each request's caller into the request's context, and answers
// the requests that are refused: in the client's protocol if that is Connect, gRPC or gRPC-Web, otherwise with status
// 401, or 503 for Unavailable. It wraps the handlers of Connect and not their calls, because Connect's interceptors do
// not see the state of TLS.
func (row *Row) Middleware(next http.Handler) http.Handler {
	errors := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, refused := row.Identify(r.Context(), OfHTTP(r))
		if refused == nil {
			next.ServeHTTP(w, r.WithContext(ctx))
			return
		}
		if row.Refused != nil {
			row.Refused(r, refused)
		}
		code := http.StatusServiceUnavailable
		if refused.Reason != Unavailable {
			code = http.StatusUnauthorized
			w.Header().Set("WWW-Authenticate", "Bearer") // RFC 9110, section 15.5.2
		}
		if errors.IsSupported(r) {
			err := error(connect.NewError(connect.Code(refused.Code()), refused))
			if row.Error != nil {
				err = row.Error(refused)
			}
			_ = errors.Write(w, r, err) // an error means that the client is gone
			return
		}
		http.Error(w, refused.Error(), code)
	})
}

// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"strconv"
	"sync"
)

// guard decides who may read the page: the browser that opened the link, once. Other users of the machine reach the port, and other sites in
// the browser can send requests to it.
type guard struct {
	mu sync.Mutex
	// token is that of the link; empty after it was used.
	token string
	// session is the value of the cookie that replaces the token.
	session string
}

func newGuard() *guard { return &guard{token: rand.Text(), session: rand.Text()} }

// exchange reports whether a token is that of the link. It is true once.
func (g *guard) exchange(token string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.token == "" || subtle.ConstantTimeCompare([]byte(token), []byte(g.token)) != 1 {
		return false
	}
	g.token = ""
	return true
}

// cookieName contains the port, because a browser sends the cookies of a host to all of its ports.
func cookieName(request *http.Request) string {
	const name = "tombolo-dashboard"
	if address, ok := request.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		return name + "-" + strconv.Itoa(address.Port)
	}
	return name
}

// isAdmitted reports whether a request has the cookie.
func (g *guard) isAdmitted(request *http.Request) bool {
	cookie, err := request.Cookie(cookieName(request))
	return err == nil && subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(g.session)) == 1
}

// admit sets the cookie.
func (g *guard) admit(w http.ResponseWriter, request *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: cookieName(request), Value: g.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
}

// policy allows what the page itself contains, and nothing else. It has no inline scripts and styles.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// check sets the headers of all responses and refuses requests that the page does not send.
func (g *guard) check(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy": policy, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
			"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
		} {
			w.Header().Set(name, value)
		}
		switch {
		case request.Method != http.MethodGet:
			w.Header().Set("Allow", http.MethodGet)
			http.Error(w, "only GET is allowed", http.StatusMethodNotAllowed)
		case !isLoopback(request.Host):
			http.Error(w, "open the link that the command printed: this host name is refused", http.StatusForbidden)
		default:
			next.ServeHTTP(w, request)
		}
	})
}

// isLoopback reports whether the Host header has a name that no DNS server can point elsewhere (DNS rebinding). The port may be another one,
// as with a forwarded port.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return host == "127.0.0.1" || host == "localhost"
}

// onlyPage refuses requests without the cookie, and those that another origin's page sends. Other ports of this host are of the same site, so
// the browser sends them the cookie.
func (g *guard) onlyPage(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		if from := request.Header.Get("Sec-Fetch-Site"); from != "" && from != "same-origin" && from != "none" || !g.isAdmitted(request) {
			http.Error(w, "open the link that the command printed", http.StatusForbidden)
			return
		}
		next(w, request)
	}
}

/// Why a call has no reply. Holds no URL, header or body.
package struct HTTPFailure: Error, Hashable, Sendable, CustomStringConvertible {
  package enum Kind: Sendable {
    /// The URL, a header or the method cannot be sent; no network was touched.
    case badCall
    /// The host's name has no address.
    case resolve
    /// Every address of the host was refused by ``HTTPSessionConfiguration/allowsAddress``.
    case refusedAddress
    /// No connection came about.
    case connect
    /// The peer's certificate does not verify, or TLS could not be agreed on.
    case tls
    /// The time for connecting, or for the whole, is over.
    case timeout
    /// The connection ended before the reply did, or the reply is not HTTP.
    case reset
    /// The reply's headers or body exceed the session's limits.
    case tooLarge
    /// It was not begun, because a reply before it ended its batch.
    case notSent
    /// The task was cancelled.
    case cancelled
    /// The session was closed.
    case closed
  }

  package let kind: Kind
  /// For people: what happened, in a few words.
  package let description: String

  package init(_ kind: Kind, _ description: String) {
    self.kind = kind
    self.description = description
  }
}

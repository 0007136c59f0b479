/// One request to be sent: redirects are not followed. Its answer comes back whole, except where
/// ``receive`` takes it.
package struct HTTPCall: Sendable {
  /// As in RFC 9110, section 9: `POST`, `GET`. Sent as it stands.
  package var method: String
  /// Absolute, `https` unless the session's configuration allows `http`; read by ``HTTPAddress``.
  package var url: String
  /// In order. A name that no token is, or a value with a line break, is
  /// ``HTTPFailure/Kind-swift.enum/badCall``.
  package var headers: [(name: String, value: String)]
  /// Sent with `Content-Length`, never in chunks.
  package var body: [UInt8]
  /// Takes the body of a 2xx reply piece by piece, on the session's thread, in place of
  /// ``HTTPReply/body``; false ends the call as ``HTTPFailure/Kind-swift.enum/cancelled``. Such a
  /// reply may go on for days: it has no limit of length, and of time only
  /// ``HTTPSessionConfiguration/silenceTimeout``.
  package var receive: (@Sendable ([UInt8]) -> Bool)?

  package init(
    method: String = "POST", url: String, headers: [(name: String, value: String)] = [],
    body: [UInt8] = []
  ) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
  }
}

/// A reply, read whole.
package struct HTTPReply: Sendable {
  /// From 200 to 999; interim replies are passed over.
  package var status: UInt16
  package var headers: [(name: String, value: String)] = []
  package var body: [UInt8] = []

  package init(status: UInt16) { self.status = status }

  /// The first header of this name, in any letter case, without the blanks around it.
  package subscript(name: String) -> String? {
    let name = name.lowercased()
    return headers.first { $0.name.lowercased() == name }?.value
  }
}

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

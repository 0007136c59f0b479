/// One request; redirects are not followed. Its reply is returned complete, unless ``receive``
/// takes the body.
package struct HTTPCall: Sendable {
  /// As in RFC 9110, section 9: `POST`, `GET`. Sent verbatim.
  package var method: String
  /// Absolute, `https` unless the session's configuration allows `http`; parsed by ``HTTPAddress``.
  package var url: String
  /// In order. A name that is not a token, or a value with a line break, fails with
  /// ``HTTPFailure/Kind-swift.enum/badCall``.
  package var headers: [(name: String, value: String)]
  /// Sent with `Content-Length`, never in chunks.
  package var body: [UInt8]
  /// Receives the body of a 2xx reply piece by piece, on the session's thread, in place of
  /// ``HTTPReply/body``; false ends the call as ``HTTPFailure/Kind-swift.enum/cancelled``. Such a
  /// reply may last for days: its length is not limited, and its time only by
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

/// A complete reply.
package struct HTTPReply: Sendable {
  /// From 200 to 999; interim replies are skipped.
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

/// The reason that a call has no reply. Contains no URL, header or body.
package struct HTTPFailure: Error, Hashable, Sendable, CustomStringConvertible {
  package enum Kind: Sendable {
    /// The URL, a header or the method cannot be sent; no network was touched.
    case badCall
    /// The host's name has no address.
    case resolve
    /// Every address of the host was rejected by ``HTTPSessionConfiguration/allowsAddress``.
    case refusedAddress
    /// No connection could be established.
    case connect
    /// The peer's certificate does not verify, or TLS negotiation failed.
    case tls
    /// The time limit for connecting, or for the whole call, was exceeded.
    case timeout
    /// The connection ended before the reply did, or the reply is not HTTP.
    case reset
    /// The reply's headers or body exceed the session's limits.
    case tooLarge
    /// The call was not started, because an earlier reply ended its batch.
    case notSent
    /// The task was cancelled.
    case cancelled
    /// The session was closed.
    case closed
  }

  package let kind: Kind
  /// A short description for people.
  package let description: String

  package init(_ kind: Kind, _ description: String) {
    self.kind = kind
    self.description = description
  }
}

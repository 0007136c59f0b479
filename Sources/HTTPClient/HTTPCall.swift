/// One request to be sent: redirects are not followed. Its answer comes back whole, except where
/// ``receive`` takes it.
package struct HTTPCall: Sendable {
  /// As in RFC 9110, section 9: `POST`, `GET`. Sent as it stands.
  package var method: String
  /// Absolute, `https` unless the session's configuration allows `http`; read by ``HTTPAddress``.
  package var url: String
  /// In order. A name that no token is, or a value with a line break, is ``HTTPFailure/Kind-swift.enum/badCall``.
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

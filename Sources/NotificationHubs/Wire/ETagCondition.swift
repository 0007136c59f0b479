import Wire

/// The condition that `If-Match` sets for the resource to change (docs/protocol/rest.md, sections
/// 3.6 and 3.8).
package enum ETagCondition: Hashable, Sendable {
  /// The header is absent.
  case none
  /// `*`: the resource must exist.
  case any
  /// The etag must be equal; weak, strong and bare forms are equivalent.
  case tag(String)

  /// The message of the 412 reply to a header of unknown form.
  package static let fault =
    "The ETag header is either missing or invalid. It should be \"*\", or a quoted ETag."

  /// Parses the header: absent, `*`, `"n"`, `W/"n"` or a bare number.
  /// - Throws: ``WireFormatError`` with ``fault``; the reply is 412.
  package init(ifMatch header: String?) throws(WireFormatError) {
    guard let header else {
      self = .none
      return
    }
    var text = Substring(header.trimmingBlanks)
    if text == "*" || text == "\"*\"" {
      self = .any
      return
    }
    if text.hasPrefix("W/") || text.hasPrefix("w/") { text = text.dropFirst(2) }
    if text.utf8.count >= 3, text.first == "\"", text.last == "\"" {
      let inner = text.dropFirst().dropLast()
      guard !inner.contains("\"") else { throw WireFormatError(Self.fault) }
      self = .tag(String(inner))
    } else {
      guard !text.isEmpty, text.utf8.count <= 20,
        text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
      else { throw WireFormatError(Self.fault) }
      self = .tag(String(text))
    }
  }

  /// Whether an existing resource with this etag may be changed.
  package func holds(for etag: String) -> Bool {
    switch self {
    case .none, .any: true
    case .tag(let tag): tag == etag
    }
  }

  /// The etag in its header form: `W/"2"`.
  package static func weak(_ etag: String) -> String { "W/\"\(etag)\"" }
}

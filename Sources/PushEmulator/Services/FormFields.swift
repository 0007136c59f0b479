import HTTPServer

/// The fields of an `application/x-www-form-urlencoded` body.
struct FormFields: Sendable {
  private let items: [(name: String, value: String)]

  /// Reads a body; broken percent-encoding makes the item vanish, as it does at real services.
  init(_ body: [UInt8]) {
    items = HTTPTarget(bytes: [UInt8(ascii: "/"), UInt8(ascii: "?")] + body).queryItems
      .compactMap { item in
        guard let name = item.name, let value = item.value else { return nil }
        return (name, value)
      }
  }

  /// The first field of that name; `nil` when it is absent or empty.
  subscript(name: String) -> String? {
    items.first { $0.name == name }.flatMap { $0.value.isEmpty ? nil : $0.value }
  }

  /// Every field in the order sent.
  var all: [(name: String, value: String)] { items }

  /// Whether a `Content-Type` says that the body is a form.
  static func isForm(_ contentType: String?) -> Bool {
    MediaType.of(contentType) == "application/x-www-form-urlencoded"
  }
}

/// Media types of requests.
enum MediaType {
  /// Type and subtype in lower case, without parameters; empty for none.
  static func of(_ contentType: String?) -> String {
    (contentType ?? "").prefix { $0 != ";" }.trimmed.lowercased()
  }
}

extension Substring {
  /// Without blanks and tabs around it.
  var trimmed: Substring {
    var text = drop { $0 == " " || $0 == "\t" }
    while let last = text.last, last == " " || last == "\t" { text.removeLast() }
    return text
  }
}

extension String {
  /// What follows the scheme in an `Authorization` field, if the scheme is this one, in any case.
  func credentials(_ scheme: String) -> String? {
    guard let blank = firstIndex(of: " "), self[..<blank].lowercased() == scheme else { return nil }
    let rest = self[blank...].trimmed
    return rest.isEmpty ? nil : String(rest)
  }
}

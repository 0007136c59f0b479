import HTTP2
import HTTPServer
import Wire

/// A parsed request to a service over HTTP/1.1, not checked yet.
struct PlainRequest: Sendable {
  let method: String
  /// Without the query.
  let path: String
  /// The part after the `?`, verbatim.
  let query: String?
  /// Scheme, host and port.
  let origin: String
  let body: [UInt8]
  private let fields: HTTP2FieldList

  init(_ request: HTTP2ServerRequest) {
    method = request.method
    let target = request.path
    if let mark = target.firstIndex(of: "?") {
      path = String(target[..<mark])
      query = String(target[target.index(after: mark)...])
    } else {
      path = target
      query = nil
    }
    origin = "\(request.pseudoFields.first(":scheme") ?? "https")://\(request.authority)"
    body = request.body
    fields = request.fields
  }

  /// The value of a header field; the first, if it came more than once.
  /// - Parameter name: In lower case.
  subscript(name: String) -> String? { fields.first(name) }

  /// The media type without its parameters, in lower case; empty for none.
  var mediaType: String { MediaType.of(self["content-type"]) }

  /// The part after a scheme in `Authorization`; the letter case of the scheme is ignored.
  /// - Parameter scheme: In lower case.
  func authorization(_ scheme: String) -> String? { self["authorization"]?.credentials(scheme) }

  /// The fields of a form; `nil` when the body is not a form.
  var form: FormFields? {
    FormFields.isForm(self["content-type"]) ? FormFields(body) : nil
  }
}

/// The fields of an `application/x-www-form-urlencoded` body.
struct FormFields: Sendable {
  private let items: [(name: String, value: String)]

  /// Parses a body; an item with broken percent-encoding is ignored, as it is by real services.
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
  /// The text without surrounding blanks and tabs.
  var trimmed: Substring {
    var text = drop { $0 == " " || $0 == "\t" }
    while let last = text.last, last == " " || last == "\t" { text.removeLast() }
    return text
  }
}

extension String {
  /// The part after the scheme in an `Authorization` field, if the scheme is this one, in any
  /// letter case.
  func credentials(_ scheme: String) -> String? {
    guard let blank = firstIndex(of: " "), self[..<blank].lowercased() == scheme else { return nil }
    let rest = self[blank...].trimmed
    return rest.isEmpty ? nil : String(rest)
  }
}

/// Parses whole numbers as services do.
enum DecimalText {
  /// Digits only, at most 2^63-1.
  static func read(_ digits: some Collection<UInt8>) -> Int64? {
    guard !digits.isEmpty else { return nil }
    var number: Int64 = 0
    for byte in digits {
      guard byte.isDigit else { return nil }
      let (product, overflow) = number.multipliedReportingOverflow(by: 10)
      let (sum, carry) = product.addingReportingOverflow(Int64(byte - UInt8(ascii: "0")))
      guard !overflow, !carry else { return nil }
      number = sum
    }
    return number
  }

  static func read(_ text: String) -> Int64? { read(text.utf8) }
}

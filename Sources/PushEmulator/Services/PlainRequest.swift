import HTTP2

/// A request to a service that speaks HTTP/1.1, taken apart and not judged yet.
struct PlainRequest: Sendable {
  let method: String
  /// Without the query.
  let path: String
  /// Behind the `?`, as it came.
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

  /// The media type without its parameters, in lower case.
  var mediaType: String? {
    self["content-type"]?.split(separator: ";", omittingEmptySubsequences: false).first
      .map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }
  }

  /// What stands behind a scheme in `Authorization`; the scheme's letter case does not matter.
  func authorization(_ scheme: String) -> String? {
    guard let field = self["authorization"] else { return nil }
    let prefix = scheme.lowercased() + " "
    guard field.lowercased().hasPrefix(prefix) else { return nil }
    let rest = field.dropFirst(prefix.count).drop { $0 == " " }
    return rest.isEmpty ? nil : String(rest)
  }

  /// The fields of a form; `nil` when the body is none.
  var form: FormBody? {
    mediaType == "application/x-www-form-urlencoded" ? FormBody(body) : nil
  }
}

/// A body of the type `application/x-www-form-urlencoded`, in UTF-8.
///
/// - SeeAlso: <https://url.spec.whatwg.org/#application/x-www-form-urlencoded>
struct FormBody: Sendable {
  private(set) var fields: [(name: String, value: String)] = []

  /// - Returns: `nil` for a broken percent sequence, text that is not UTF-8, or a name that comes
  ///   twice: readers differ in which of the two counts.
  init?(_ bytes: [UInt8]) {
    guard !bytes.isEmpty else { return }
    var names: Set<String> = []
    for pair in bytes.split(separator: UInt8(ascii: "&")) {
      let parts = pair.split(
        separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = Self.decoded(parts[0]),
        let value = parts.count > 1 ? Self.decoded(parts[1]) : "", names.insert(name).inserted
      else { return nil }
      fields.append((name, value))
    }
  }

  subscript(name: String) -> String? { fields.first { $0.name == name }?.value }

  /// Text with `%XX` and, in a form, `+` for a blank.
  static func decoded(_ bytes: some Collection<UInt8>, plusIsBlank: Bool = true) -> String? {
    var out: [UInt8] = []
    out.reserveCapacity(bytes.count)
    var rest = bytes[...]
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "+") where plusIsBlank: out.append(UInt8(ascii: " "))
      case UInt8(ascii: "%"):
        guard let high = rest.popFirst().flatMap(HexDigit.value),
          let low = rest.popFirst().flatMap(HexDigit.value)
        else { return nil }
        out.append(high << 4 | low)
      default: out.append(byte)
      }
    }
    return String(validating: out, as: UTF8.self)
  }
}

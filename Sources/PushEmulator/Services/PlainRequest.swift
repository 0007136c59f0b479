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

  /// The media type without its parameters, in lower case; empty for none.
  var mediaType: String { MediaType.of(self["content-type"]) }

  /// What stands behind a scheme in `Authorization`; the scheme's letter case does not matter.
  /// - Parameter scheme: In lower case.
  func authorization(_ scheme: String) -> String? { self["authorization"]?.credentials(scheme) }

  /// The fields of a form; `nil` when the body is none.
  var form: FormFields? {
    FormFields.isForm(self["content-type"]) ? FormFields(body) : nil
  }
}

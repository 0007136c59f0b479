extension HTTP2RequestBatch {
  /// A request as text and bytes, for anyone who has to send it by other means.
  package struct Plain: Sendable {
    package let path: String
    /// Without the pseudo-header fields.
    package let fields: [(name: String, value: String)]
    package let body: [UInt8]
  }

  /// - Parameter index: From 0 to ``count`` - 1.
  package func plain(_ index: Int) -> Plain {
    let request = requests[index]
    let fixed = fieldSets[Int(request.fieldSet)].map { (text($0.name), text($0.value)) }
    let first = Int(request.firstExtra)
    let added = extras[first..<(first + Int(request.extraCount))].map {
      (text(names[Int($0.name)].range), text($0.value))
    }
    return Plain(
      path: text(request.path), fields: fixed + added, body: Array(bytes[request.body.indices]))
  }

  private func text(_ range: HTTP2ByteRange) -> String {
    String(decoding: bytes[range.indices], as: UTF8.self)
  }
}

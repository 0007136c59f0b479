import HTTP2
import Wire

extension Journal.Entry {
  /// The value of ``head`` for a request, without credentials.
  ///
  /// - Parameter path: Replaces that of the request.
  static func head(_ raw: HTTP2ServerRequest, path: String? = nil) -> [UInt8] {
    var head: [UInt8] = []
    head.reserveCapacity(384)
    func add(_ name: some Sequence<UInt8>, _ value: some Sequence<UInt8>) {
      head.append(contentsOf: name)
      head.append(0)
      head.append(contentsOf: value)
      head.append(0)
    }
    for name in [":method", ":path", ":authority"] {
      let value = raw.pseudoFields.firstBytes(name) ?? []
      if name == ":path" {
        add(name.utf8, path.map { ArraySlice($0.utf8) } ?? withoutSecrets(value))
      } else {
        add(name.utf8, value)
      }
    }
    for index in 0..<raw.fields.count {
      let name = raw.fields.name(at: index)
      if !isSecret(name) { add(name, raw.fields.value(at: index)) }
    }
    return head
  }

  /// The ends of the names of header fields, and of items of a query, whose value may be a
  /// credential.
  private static let secretEndings = [
    "authorization", "auth", "token", "key", "secret", "cookie", "assertion", "password",
  ].map { Array($0.utf8) }

  /// Names with such an end and a value that the stand-ins read: a channel of WNS, the page of a
  /// list, whether the bearer is an access token.
  private static let plainNames = ["token", "page_token", "pagetoken", "access_token_auth"]
    .map { Array($0.utf8) }

  /// - Parameter name: In lower case. Called for every field, so the last byte is compared first.
  private static func isSecret(_ name: some BidirectionalCollection<UInt8>) -> Bool {
    guard let last = name.last else { return false }
    return secretEndings.contains { $0.last == last && name.suffix($0.count).elementsEqual($0) }
      && !plainNames.contains { name.elementsEqual($0) }
  }

  /// A request target whose query has no values of secret items.
  private static func withoutSecrets(_ target: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    guard let mark = target.firstIndex(of: UInt8(ascii: "?")) else { return target }
    let items = target[(mark + 1)...].split(
      separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
    let kept = items.map { item -> ArraySlice<UInt8> in
      let name = item.prefix { $0 != UInt8(ascii: "=") }
      let plain = String(decoding: PercentEncoding.decodeLeniently(name), as: UTF8.self)
      return isSecret(plain.lowercased().utf8) ? name + Array("=…".utf8) : item
    }
    return target[...mark] + Array(kept.joined(separator: [UInt8(ascii: "&")]))
  }
}

import HTTPClient

/// The parts of a subscription's endpoint. It comes from a client nobody knows: what is read here is
/// what is connected to, and what is not plainly an https URL is refused.
struct WebPushEndpoint {
  let origin: Origin
  /// With query, as it stands.
  let path: ArraySlice<UInt8>

  private static let scheme = Array("https://".utf8)

  /// - Parameter known: Origins seen before; a slice of them is quicker than making another.
  init?(_ url: ArraySlice<UInt8>, known: [Origin] = []) {
    guard url.count <= 2048, url.starts(with: Self.scheme, by: { Self.lowered($0) == $1 }),
      url.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\\") }),
      !url.contains(UInt8(ascii: "#"))
    else { return nil }
    let rest = url.dropFirst(Self.scheme.count)
    guard
      let slash = rest.firstIndex(where: { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") }),
      rest[slash] == UInt8(ascii: "/"), !HTTPAddress.hasDotSegment(rest[slash...]),
      let (host, port) = Self.authority(rest[..<slash])
    else { return nil }
    let match = known.last { $0.port == port && $0.host.utf8.elementsEqual(host) }
    origin = match ?? Origin(host: String(decoding: host, as: UTF8.self), port: port)
    path = rest[slash...]
  }

  private static func authority(_ bytes: ArraySlice<UInt8>) -> (host: [UInt8], port: UInt16)? {
    var host = bytes[...]
    var port = bytes[bytes.endIndex...]
    if bytes.first == UInt8(ascii: "[") {
      guard let end = bytes.firstIndex(of: UInt8(ascii: "]")) else { return nil }
      host = bytes[(bytes.startIndex + 1)..<end]
      port = bytes[(end + 1)...]
      let text = String(decoding: host, as: UTF8.self)
      guard text.contains(":"), IPAddress(text) != nil else { return nil }
    } else {
      if let colon = bytes.firstIndex(of: UInt8(ascii: ":")) {
        host = bytes[..<colon]
        port = bytes[colon...]
      }
      guard !host.isEmpty, host.count <= 253, host.allSatisfy(isNameByte) else { return nil }
    }
    guard !port.isEmpty else { return (host.map(lowered), 443) }
    guard port.first == UInt8(ascii: ":"),
      port.dropFirst().allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
      let number = UInt16(String(decoding: port.dropFirst(), as: UTF8.self)), number > 0
    else { return nil }
    return (host.map(lowered), number)
  }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    switch lowered(byte) {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
      UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
      true
    default: false
    }
  }

  private static func lowered(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte + 32 : byte
  }
}

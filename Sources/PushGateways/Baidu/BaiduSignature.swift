import Cryptography

/// The signature of a request to Baidu Cloud Push (spec `pns/baidu.md` section 2).
enum BaiduSignature {
  /// - Parameters:
  ///   - url: Without query.
  ///   - fields: Raw values, without `sign`.
  static func sign(
    method: String, url: String, fields: [(name: String, value: String)], secret: String
  ) -> String {
    let sorted = fields.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    let base = method + url + sorted.map { "\($0.name)=\($0.value)" }.joined() + secret
    return Digest.md5(encode(base)).map { byte in
      let text = String(byte, radix: 16)
      return text.count == 1 ? "0" + text : text
    }.joined()
  }

  /// As PHP's `urlencode`: letters, digits and `-_.` stay, a blank becomes `+`.
  private static func encode(_ text: String) -> [UInt8] {
    let digits = Array("0123456789ABCDEF".utf8)
    var out: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
        UInt8(ascii: "."):
        out.append(byte)
      case UInt8(ascii: " "): out.append(UInt8(ascii: "+"))
      default: out += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return out
  }
}

/// Bodies of the type `application/x-www-form-urlencoded` (WHATWG URL Standard, section 5.2).
enum FormBody {
  static let contentType = "application/x-www-form-urlencoded"

  /// The pairs in order: a blank becomes `+`; all but letters, digits and `*-._` become `%XX` in
  /// upper case.
  static func encode(_ fields: [(name: String, value: String)]) -> [UInt8] {
    var body: [UInt8] = []
    for (name, value) in fields {
      if !body.isEmpty { body.append(UInt8(ascii: "&")) }
      append(name, to: &body)
      body.append(UInt8(ascii: "="))
      append(value, to: &body)
    }
    return body
  }

  private static func append(_ text: String, to body: inout [UInt8]) {
    let digits = Array("0123456789ABCDEF".utf8)
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "*"), UInt8(ascii: "-"),
        UInt8(ascii: "."), UInt8(ascii: "_"):
        body.append(byte)
      case UInt8(ascii: " "): body.append(UInt8(ascii: "+"))
      default:
        body += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
  }
}

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Base 64 with the alphabet for URLs and without padding (RFC 4648, section 5).
enum Base64URL {
  static func encode(_ bytes: [UInt8]) -> String {
    let text = Data(bytes).base64EncodedString()
    return String(
      text.prefix { $0 != "=" }.map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 })
  }

  /// Strict: exactly what ``encode(_:)`` writes.
  static func decode(_ text: some StringProtocol) -> [UInt8]? {
    var standard = ""
    for character in text {
      switch character {
      case "-": standard.append("+")
      case "_": standard.append("/")
      case "+", "/", "=": return nil
      default: standard.append(character)
      }
    }
    standard += String(repeating: "=", count: (4 - standard.count % 4) % 4)
    guard let data = Data(base64Encoded: standard) else { return nil }
    let bytes = Array(data)
    return encode(bytes) == text ? bytes : nil
  }
}

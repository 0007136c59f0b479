import Foundation
import Wire

/// A JSON web signature in compact form (RFC 7515): `header.claims.signature`, each base 64 URL.
///
/// Parsing does not verify: read the header and claims, choose the key by them, then call
/// ``verifies(with:)``. So a verifier can use its own order of checks.
package struct CompactJWS: Sendable {
  /// The header as it was sent, and its members.
  package let header: Fields
  /// The claims as they were sent, and their members.
  package let claims: Fields
  /// Not yet verified; ES256 has 64 bytes, `alg: none` has none.
  package let signature: [UInt8]
  /// The signed bytes: the ASCII of the first two parts with their dot.
  package let signingInput: [UInt8]

  /// Parses a token: three parts of strict base 64 URL, the first two JSON objects.
  /// - Throws: ``CryptographyError`` (malformed), which names the malformed part.
  package init(_ text: String) throws(CryptographyError) {
    let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
      .map { Substring($0) }
    guard parts.count == 3 else {
      throw CryptographyError(.malformed, "The token has \(parts.count) parts, not three.")
    }
    header = try Fields(part: parts[0], named: "header")
    claims = try Fields(part: parts[1], named: "claims")
    guard let signature = Base64URL.decode(parts[2]) else {
      throw CryptographyError(.malformed, "The token's signature is not base 64 URL.")
    }
    self.signature = signature
    signingInput = Array(parts[0].utf8) + [UInt8(ascii: ".")] + Array(parts[1].utf8)
  }

  /// Whether the header says `ES256` and the signature is this key's.
  package func verifies(with key: P256PublicKey) -> Bool {
    header.string("alg") == "ES256" && key.verifies(signature, for: signingInput)
  }

  /// Creates an ES256 token.
  /// - Parameters:
  ///   - header: A JSON object in UTF-8, with `"alg":"ES256"`; used verbatim.
  ///   - claims: A JSON object in UTF-8; used verbatim.
  package static func sign(
    header: [UInt8], claims: [UInt8], with key: P256PrivateKey
  ) throws(CryptographyError) -> String {
    let input = Base64URL.encode(header) + "." + Base64URL.encode(claims)
    return input + "." + Base64URL.encode(try key.signature(for: Array(input.utf8)))
  }
}

extension CompactJWS {
  /// The members of a token's header or claims.
  package struct Fields: Sendable {
    /// The JSON text, as sent.
    package let json: [UInt8]
    private let members: [String: Value]

    init(part: Substring, named name: String) throws(CryptographyError) {
      guard let json = Base64URL.decode(part) else {
        throw CryptographyError(.malformed, "The token's \(name) is not base 64 URL.")
      }
      guard let members = try? JSONDecoder().decode([String: Value].self, from: Data(json)) else {
        throw CryptographyError(.malformed, "The token's \(name) is not a JSON object.")
      }
      (self.json, self.members) = (json, members)
    }

    /// The member's text; `nil` when it is absent or not a string.
    package func string(_ name: String) -> String? {
      if case .string(let value)? = members[name] { value } else { nil }
    }

    /// The member's value; `nil` when it is absent, not a number, or not a whole number of 64 bits.
    package func integer(_ name: String) -> Int64? {
      if case .integer(let value)? = members[name] { value } else { nil }
    }

    /// The member's value; `nil` when it is absent or not a number.
    package func number(_ name: String) -> Double? {
      switch members[name] {
      case .integer(let value): Double(value)
      case .fraction(let value): value
      default: nil
      }
    }

    /// Whether the member is present, whatever its type.
    package func contains(_ name: String) -> Bool { members[name] != nil }
  }

  private enum Value: Decodable, Sendable {
    case string(String)
    case integer(Int64)
    case fraction(Double)
    case other

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let text = try? container.decode(String.self) {
        self = .string(text)
      } else if let number = try? container.decode(Int64.self) {
        self = .integer(number)
      } else if let number = try? container.decode(Double.self) {
        self = .fraction(number)
      } else {
        self = .other
      }
    }
  }
}

extension CompactJWS {
  /// Whether the header says `RS256` and the signature is this key's.
  package func verifies(with key: RSAPublicKey) -> Bool {
    header.string("alg") == "RS256" && key.verifies(signature, for: signingInput)
  }

  /// Creates an RS256 token.
  /// - Parameters:
  ///   - header: A JSON object in UTF-8, with `"alg":"RS256"`; used verbatim.
  ///   - claims: A JSON object in UTF-8; used verbatim.
  package static func sign(
    header: [UInt8], claims: [UInt8], with key: RSAPrivateKey
  ) throws(CryptographyError) -> String {
    let input = Base64URL.encode(header) + "." + Base64URL.encode(claims)
    return input + "." + Base64URL.encode(try key.signature(for: Array(input.utf8)))
  }
}

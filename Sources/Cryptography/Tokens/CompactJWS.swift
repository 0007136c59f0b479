import Foundation
import Wire

/// A JSON web signature in compact form (RFC 7515): `header.claims.signature`, each base 64 URL.
///
/// Reading one says nothing about its truth: look at the header and claims, choose the key by them,
/// then ask ``verifies(with:)``. So a checker can keep to its own order of complaints.
package struct CompactJWS: Sendable {
  /// The header as it was sent, and its members.
  package let header: Fields
  /// The claims as they were sent, and their members.
  package let claims: Fields
  /// Not yet checked; ES256 wants 64 bytes, `alg: none` has none.
  package let signature: [UInt8]
  /// What is signed: the ASCII of the first two parts with their dot.
  package let signingInput: [UInt8]

  /// Reads a token: three parts of strict base 64 URL, the first two JSON objects.
  /// - Throws: ``CryptographyError`` (malformed), with which part is wrong.
  package init(_ text: String) throws(CryptographyError) {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
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

  /// True when the header says `ES256` and the signature is this key's.
  package func verifies(with key: P256PublicKey) -> Bool {
    header.string("alg") == "ES256" && key.verifies(signature, for: signingInput)
  }

  /// Makes an ES256 token.
  /// - Parameters:
  ///   - header: A JSON object in UTF-8, with `"alg":"ES256"`; taken as it is.
  ///   - claims: A JSON object in UTF-8; taken as it is.
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

    /// Whether the member stands there at all, whatever its kind.
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
  /// True when the header says `RS256` and the signature is this key's.
  package func verifies(with key: RSAPublicKey) -> Bool {
    header.string("alg") == "RS256" && key.verifies(signature, for: signingInput)
  }

  /// Makes an RS256 token.
  /// - Parameters:
  ///   - header: A JSON object in UTF-8, with `"alg":"RS256"`; taken as it is.
  ///   - claims: A JSON object in UTF-8; taken as it is.
  package static func sign(
    header: [UInt8], claims: [UInt8], with key: RSAPrivateKey
  ) throws(CryptographyError) -> String {
    let input = Base64URL.encode(header) + "." + Base64URL.encode(claims)
    return input + "." + Base64URL.encode(try key.signature(for: Array(input.utf8)))
  }
}

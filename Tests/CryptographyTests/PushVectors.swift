import Foundation
import Testing

@testable import Cryptography

/// The published test vectors of Web Push encryption and of service account assertions.
struct PushVectors: Decodable {
  struct Encryptions: Decodable {
    let cases: [Encryption]
    let negative: [Negative]
  }
  struct Encryption: Decodable, CustomTestStringConvertible {
    let name, uaPrivateB64U, asPrivateB64U, uaPublicB64U, authSecretB64U, saltB64U: String
    let plaintextUtf8, bodyB64U, bodySha256Hex: String?
    let paddingBytes: Int?
    let bodyLength: Int
    var testDescription: String { name }

    /// The one case without text has a rule: byte i is (7·i+3) mod 256.
    var plaintext: [UInt8] {
      plaintextUtf8.map { Array($0.utf8) }
        ?? (0..<3993).map { UInt8(truncatingIfNeeded: 7 * $0 + 3) }
    }
  }
  struct Negative: Decodable, CustomTestStringConvertible {
    let name, bodyB64U, uaPrivateB64U, authSecretB64U: String
    var testDescription: String { name }
  }
  struct Assertion: Decodable {
    let headerJson, claimsJson, signingInput, signatureB64U: String
  }

  let rfc8291: Encryptions
  let fcmOauth: Assertion

  static let all: PushVectors = {
    let file = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "Fixtures/web-push-and-fcm.json")
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    do {
      return try decoder.decode(PushVectors.self, from: Data(contentsOf: file))
    } catch {
      fatalError("the fixture \(file.path) does not read: \(error)")
    }
  }()
}

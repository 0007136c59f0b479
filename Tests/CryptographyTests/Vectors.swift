import Foundation
import Testing

/// The published test vectors these tests check against.
struct Vectors: Decodable {
  struct Key: Decodable {
    let publicUncompressedHex: String
    let publicSpkiPem: String
    let privatePkcs8Pem: String
    let privateSec1Pem: String
    let rfc6979Sha256Sample: Sample?
  }
  struct RSAKey: Decodable {
    let privatePkcs8Pem: String
    let publicSpkiPem: String
  }
  struct Sample: Decodable { let messageUtf8, rHex, sHex: String }
  struct Keys: Decodable {
    let p256Test, p256Other: Key
    let rsaTest: RSAKey
  }

  struct Conversions: Decodable { let cases: [Conversion] }
  struct Conversion: Decodable, CustomTestStringConvertible {
    let name, rawHex, derHex: String
    var testDescription: String { name }
  }

  struct Tokens: Decodable {
    let kid, teamId: String
    let cases: [Token]
  }
  struct Token: Decodable, CustomTestStringConvertible {
    let name, token, expect: String
    let headerJson, claimsJson, signingInput, signatureRawHex, signatureDerHex: String?
    var testDescription: String { name }
  }

  struct Archives: Decodable {
    let caCertificatePem: String
    let cases: [Archive]
  }
  struct Archive: Decodable, CustomTestStringConvertible {
    struct Expectation: Decodable {
      let uid: String
      let development, production, voip, topicHeaderRequired: Bool
      let topics: [String]
      let sha1ThumbprintHex: String
    }
    let name, password, wrongPassword, p12B64: String
    let expect: Expectation
    var testDescription: String { name }
  }

  let keys: Keys
  let ecdsaRawDer: Conversions
  let apnsProviderJwt: Tokens
  let apnsP12: Archives

  static let all: Vectors = {
    let file = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "Fixtures/vectors.json")
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    do {
      return try decoder.decode(Vectors.self, from: Data(contentsOf: file))
    } catch {
      fatalError("the fixture \(file.path) does not read: \(error)")
    }
  }()
}

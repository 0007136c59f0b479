import Testing
import Wire

@testable import Cryptography

@Suite("Compact JWS")
struct CompactJWSTests {
  private static let tokens = Vectors.all.apnsProviderJwt

  /// The verdict on a token's form, header, team and signature; its age is the caller's business.
  private func accepts(_ text: String) throws -> Bool {
    let key = try P256PublicKey(pem: Vectors.all.keys.p256Test.publicSpkiPem)
    guard let token = try? CompactJWS(text) else { return false }
    return token.header.string("kid") == Self.tokens.kid
      && token.claims.string("iss") == Self.tokens.teamId
      && token.claims.integer("iat").map { $0 < 1_800_000_000 } ?? false
      && token.verifies(with: key)
  }

  @Test("every provider token of the vectors gets its verdict", arguments: Self.tokens.cases)
  func verdicts(example: Vectors.Token) throws {
    // An expired token is sound in itself; only the clock speaks against it.
    let isSound = example.expect == "accept" || example.expect.contains("ExpiredProviderToken")
    #expect(try accepts(example.token) == isSound)
  }

  @Test("the parts of the valid token are those listed")
  func parts() throws {
    let example = try #require(Self.tokens.cases.first { $0.name == "valid" })
    let token = try CompactJWS(example.token)
    #expect(String(decoding: token.header.json, as: UTF8.self) == example.headerJson)
    #expect(String(decoding: token.claims.json, as: UTF8.self) == example.claimsJson)
    #expect(String(decoding: token.signingInput, as: UTF8.self) == example.signingInput)
    #expect(Hex.encode(token.signature) == example.signatureRawHex)
    let der = try #require(ECDSASignature.der(raw: token.signature))
    #expect(Hex.encode(der) == example.signatureDerHex)
  }

  @Test("a token made here verifies with its key and carries the JSON as given")
  func making() throws {
    let key = try P256PrivateKey(pem: Vectors.all.keys.p256Test.privatePkcs8Pem)
    let header = Array(#"{"alg":"ES256","kid":"ABC123DEFG"}"#.utf8)
    let claims = Array(#"{"iss":"DEF123GHIJ","iat":1700000000}"#.utf8)
    let text = try CompactJWS.sign(header: header, claims: claims, with: key)
    let token = try CompactJWS(text)
    #expect(token.header.json == header)
    #expect(token.claims.json == claims)
    #expect(try accepts(text))
    #expect(try CompactJWS.sign(header: header, claims: claims, with: key) != text)
  }

  @Test("members tell strings, whole numbers and everything else apart")
  func members() throws {
    let json =
      #"{"s":"x","i":-7,"f":1.5,"b":true,"n":null,"o":{"a":[1]},"big":99999999999999999999}"#
    let part = Base64URL.encode(Array(json.utf8))
    let fields = try CompactJWS("\(part).\(part).").claims
    #expect(fields.string("s") == "x")
    #expect(fields.integer("i") == -7)
    for name in ["f", "b", "n", "o", "big", "s"] { #expect(fields.integer(name) == nil) }
    for name in ["i", "f", "b", "n", "o", "missing"] { #expect(fields.string(name) == nil) }
    #expect(fields.contains("o"))
    #expect(!fields.contains("missing"))
  }

  @Test(
    "what is not three parts of base 64 URL with two JSON objects does not read",
    arguments: [
      "", ".", "..", "a.b.c", "e30.e30", "e30.e30..", "e30.W10.", "MQ.e30.", "e30.e30.=",
      "e30=.e30.",
    ])
  func malformed(text: String) {
    #expect(throws: CryptographyError.self) { try CompactJWS(text) }
  }

  @Test("deeply nested JSON is refused, not followed")
  func nesting() {
    let json = #"{"a":"# + String(repeating: "[", count: 100_000)
    let part = Base64URL.encode(Array(json.utf8))
    #expect(throws: CryptographyError.self) { try CompactJWS("\(part).e30.") }
  }
}

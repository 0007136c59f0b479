import Foundation
import Testing
import Wire

@testable import Cryptography

@Suite("Sealed secrets")
struct SecretTests {
  private func kind(_ body: () throws(CryptographyError) -> Void) -> CryptographyError.Kind? {
    do throws(CryptographyError) {
      try body()
      return nil
    } catch {
      return error.kind
    }
  }

  @Test("a sealed value opens to what it was", arguments: [0, 1, 16, 5000])
  func roundTrip(count: Int) throws {
    let sealer = SecretSealer(key: try MasterKey())
    let plaintext = try SecureRandom.bytes(count)
    let sealed = try sealer.seal(plaintext, context: "policy/1")
    #expect(sealed.count == count + SecretSealer.overhead)
    #expect(try sealer.open(sealed, context: "policy/1") == plaintext)
    #expect(try sealer.seal(plaintext, context: "policy/1") != sealed)
  }

  @Test("any changed byte, a shorter value, another context or another key keeps it shut")
  func tampering() throws {
    let sealer = SecretSealer(key: try MasterKey())
    let sealed = try sealer.seal(Array("secret".utf8), context: "a")
    for position in sealed.indices {
      var changed = sealed
      changed[position] ^= 0x80
      #expect(
        kind { () throws(CryptographyError) in _ = try sealer.open(changed, context: "a") }
          == .sealBroken)
    }
    for count in 0..<sealed.count {
      #expect(
        kind { () throws(CryptographyError) in
          _ = try sealer.open(Array(sealed.prefix(count)), context: "a")
        } == .sealBroken)
    }
    #expect(
      kind { () throws(CryptographyError) in _ = try sealer.open(sealed, context: "b") }
        == .sealBroken)
    let other = SecretSealer(key: try MasterKey())
    #expect(
      kind { () throws(CryptographyError) in _ = try other.open(sealed, context: "a") }
        == .sealBroken)
  }

  @Test("a value sealed by another AES-256-GCM opens here")
  func knownAnswer() throws {
    // Made with Python's `cryptography`: key and nonce count up from 0.
    let key = try MasterKey(text: Hex.encode((0..<32).map { UInt8($0) }), origin: "the test")
    let sealed = try #require(
      Hex.decode("01000102030405060708090a0b2622a57ea697a76f2f4ef797c875ac46657d79f15dd76419"))
    let plaintext = try SecretSealer(key: key).open(sealed, context: "credential/7/apns")
    #expect(String(decoding: plaintext, as: UTF8.self) == "a secret")
  }

  @Test("a master key reads from base 64, padded or not, and from hexadecimal digits")
  func keyTexts() throws {
    let bytes = (0..<32).map { UInt8($0 * 8) }
    let base64 = Base64.encode(bytes)
    for text in [base64, base64 + "\n", base64.replacing("=", with: ""), Hex.encode(bytes)] {
      #expect(try MasterKey(text: text, origin: "the test").bytes == bytes)
    }
  }

  @Test(
    "another text is refused with where it stood and what to do",
    arguments: ["", "abc", "0011", "!"])
  func badKeyTexts(text: String) {
    let error = #expect(throws: CryptographyError.self) {
      try MasterKey(text: text, origin: "the variable BELFRY_MASTER_KEY")
    }
    #expect(error?.message.contains("the variable BELFRY_MASTER_KEY") == true)
    #expect(error?.message.contains("openssl rand") == true)
  }

  @Test("a master key never shows itself")
  func hidden() throws {
    let key = try MasterKey()
    var dumped = ""
    dump(key, to: &dumped)
    for text in ["\(key)", String(reflecting: key), dumped] {
      #expect(!text.contains(Base64.encode(key.bytes)))
      #expect(!text.contains("\(key.bytes[0]), \(key.bytes[1])"))
      #expect(text.contains("MasterKey"))
    }
  }

  @Test("the key file is made once, whole, for its owner alone, and read from then on")
  func keyFile() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("master.key")
    let (key, created) = try MasterKey.loadOrCreate(file: path)
    #expect(created)
    let again = try MasterKey.loadOrCreate(file: path)
    #expect(!again.created)
    #expect(again.key.bytes == key.bytes)
    #expect(try MasterKey.load(file: path).bytes == key.bytes)
    let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    #expect(mode == 0o600)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: directory.path("")) == ["master.key"])
  }

  @Test("many that start together get the same key")
  func race() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("master.key")
    let keys = try await withThrowingTaskGroup(of: (MasterKey, Bool).self) { group in
      for _ in 0..<16 { group.addTask { try MasterKey.loadOrCreate(file: path) } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(Set(keys.map(\.0.bytes)).count == 1)
    #expect(keys.count { $0.1 } == 1)
  }

  @Test("a missing, damaged or unreachable key file says what to do and is left as it is")
  func badKeyFiles() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("master.key")
    #expect(kind { () throws(CryptographyError) in _ = try MasterKey.load(file: path) } == .file)
    let nowhere = directory.path("no/such/master.key")
    #expect(
      kind { () throws(CryptographyError) in _ = try MasterKey.loadOrCreate(file: nowhere) }
        == .file)
    try Data("half a k".utf8).write(to: URL(filePath: path))
    #expect(
      kind { () throws(CryptographyError) in _ = try MasterKey.loadOrCreate(file: path) }
        == .malformed)
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "half a k")
  }
}

/// A directory that goes with its owner.
final class TemporaryDirectory {
  private let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory.appending(path: "belfry-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: url) }

  func path(_ name: String) -> String { url.appending(path: name).path }
}

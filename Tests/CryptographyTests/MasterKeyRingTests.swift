import Foundation
import Testing
import Wire

@testable import Cryptography

@Suite("Master keys that are replaced")
struct MasterKeyRingTests {
  private let directory: TemporaryDirectory
  private var path: String { directory.path("master.key") }

  init() throws { directory = try TemporaryDirectory() }

  private func text(_ keys: MasterKey...) -> String { keys.map(\.line).joined() }

  private func write(_ text: String) throws {
    try Data(text.utf8).write(to: URL(filePath: path))
  }

  private func message(_ body: () throws -> Void) -> String {
    do {
      try body()
      return ""
    } catch {
      return "\(error)"
    }
  }

  @Test("several are read, the newest first, whatever stands between them")
  func texts() throws {
    let (one, two) = (try MasterKey(), try MasterKey())
    let words = [Base64.encode(one.bytes), Hex.encode(two.bytes)]
    for separator in ["\n", " ", ",", ", ", "\r\n\n"] {
      let ring = try MasterKeyRing(text: words.joined(separator: separator), origin: "the test")
      #expect(ring.all.map(\.bytes) == [one.bytes, two.bytes])
      #expect(ring.ids == [one.id, two.id])
    }
    let spaced = words[1].prefix(20) + " " + words[1].dropFirst(20)
    #expect(try MasterKeyRing(text: String(spaced), origin: "the test").ids == [two.id])
    #expect(try MasterKeyRing(text: text(one, one), origin: "the test").ids == [one.id])
    let many = try (0..<9).map { _ in try MasterKey().line }.joined()
    for wrong in ["", words[0] + " abc", "abc " + words[0], many] {
      let fault = message { _ = try MasterKeyRing(text: wrong, origin: "the test") }
      #expect(fault.contains("the test"))
    }
  }

  @Test("an id is the key's own and is not part of it")
  func ids() throws {
    let key = try MasterKey()
    #expect(key.id.count == 8 && Hex.decode(key.id) != nil)
    #expect(try MasterKey(text: Hex.encode(key.bytes), origin: "the test").id == key.id)
    #expect(!Hex.encode(key.bytes).contains(key.id))
  }

  @Test("values of each key open, and of the form without an id; a key that is not here is named")
  func opening() throws {
    let (new, old, other) = (try MasterKey(), try MasterKey(), try MasterKey())
    try write(text(new, old))
    let sealer = SecretSealer(ring: try MasterKeyRing(file: path))
    let secret = Array("secret".utf8)
    let values = [
      try SecretSealer(key: old).seal(secret, context: "c"), try sealer.seal(secret, context: "c"),
      try sealer.seal(secret, context: "c", under: old.id),
    ]
    for value in values { #expect(try sealer.open(value, context: "c") == secret) }
    #expect(
      try values.map { try sealer.key(of: $0, context: "c") } == [old.id, new.id, old.id])
    #expect(values[1].starts(with: SecretSealer.head(of: new.id)))
    let nonce = try SecureRandom.bytes(12)
    let sealed = try AuthenticatedCipher.aes256GCM.seal(
      secret, key: old.bytes, nonce: nonce, associated: [1] + Array("c".utf8))
    let first = [1] + nonce + sealed
    #expect(try sealer.open(first, context: "c") == secret)
    #expect(try sealer.key(of: first, context: "c") == old.id)
    let foreign = try SecretSealer(key: other).seal(secret, context: "c")
    #expect(message { _ = try sealer.open(foreign, context: "c") }.contains(other.id))
    let unknown = message { _ = try sealer.seal(secret, context: "c", under: other.id) }
    #expect(unknown.contains(other.id))
    // A value whose id is exchanged for that of another key does not open under that.
    let forged = SecretSealer.head(of: old.id) + values[1].dropFirst(5)
    #expect(!message { _ = try sealer.open(forged, context: "c") }.isEmpty)
  }

  @Test("a file that has changed is read when a value wants it; a faulty one changes nothing")
  func readingAgain() throws {
    let (new, old) = (try MasterKey(), try MasterKey())
    try write(text(old))
    let ring = try MasterKeyRing(file: path)
    let value = try SecretSealer(key: new).seal([1], context: "c")
    let sealer = SecretSealer(ring: ring)
    for fault in [text(old), "half a k", ""] {
      try write(fault)
      #expect(message { _ = try sealer.open(value, context: "c") }.contains(new.id))
      #expect(ring.ids == [old.id])
    }
    try FileManager.default.removeItem(atPath: path)
    #expect(message { _ = try ring.readAgain() }.contains("no master key at"))
    try write(text(new, old))
    #expect(try sealer.open(value, context: "c") == [1])
    #expect(ring.ids == [new.id, old.id])
    #expect(try !ring.readAgain())
  }

  @Test("the file is replaced whole, for its owner alone, and a link to it stays one")
  func replacing() throws {
    let (new, old) = (try MasterKey(), try MasterKey())
    try write(text(old))
    let link = directory.path("link")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
    // As a process that was killed leaves it.
    try Data("half".utf8).write(to: URL(filePath: path + ".new"))
    let ring = try MasterKeyRing(file: link)
    let lock = try ring.lock()
    #expect(message { _ = try MasterKeyRing(file: link).lock() }.contains("Another process"))
    try ring.replace(with: [new, old])
    let aside = try ring.putAside(old)
    withExtendedLifetime(lock) {}
    #expect(try MasterKeyRing(file: path).ids == [new.id, old.id])
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == path)
    #expect(aside == "\(link).\(old.id)")
    #expect(try MasterKey.load(file: aside).bytes == old.bytes)
    for file in [path, aside] {
      let attributes = try FileManager.default.attributesOfItem(atPath: file)
      #expect(attributes[.posixPermissions] as? Int == 0o600)
    }
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.path(""))
    #expect(!names.contains { $0.hasSuffix(".new") })
  }
}

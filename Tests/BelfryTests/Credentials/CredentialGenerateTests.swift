import Cryptography
import Foundation
import HubTesting
import Testing
import Wire

extension CommandLineSuite {
  @Suite("Making a VAPID pair") struct CredentialGenerateTests {
    private let scratch: Scratch
    private let data: [String]

    init() async throws {
      scratch = try Scratch()
      data = ["--data", scratch.path + "/data"]
      _ = try await BelfryProcess.run(["hub", "create", "news"] + data)
    }

    private func set(
      _ words: [String]
    ) async throws -> (code: Int32, output: String, errors: String) {
      try await BelfryProcess.run(
        ["credential", "set", "browser", "--subject", "mailto:ops@example.com"] + words + data)
    }

    @Test("the public key is printed for the page, the private one kept or written out as asked")
    func generate() async throws {
      let file = scratch.path + "/vapid.pem"
      let (code, output, errors) = try await set(["--generate", "--private-key", file])
      #expect(code == 0, "\(errors)")
      let publicKey = try #require(output.split(separator: "\n").last.map(String.init))
      #expect(publicKey.count == 87)
      let pem = try String(contentsOfFile: file, encoding: .utf8)
      #expect(Base64URL.encode(try P256PrivateKey(pem: pem).publicKey().point) == publicKey)
      let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions]
      #expect((mode as? NSNumber)?.intValue == 0o600)
      let list = try await BelfryProcess.run(["credential", "list"] + data)
      #expect(list.output.contains(publicKey) && !list.output.contains("PRIVATE"))
      // A second pair would end every subscription.
      let second = try await set(["--generate"])
      #expect(second.code == 1 && second.errors.contains("credential delete web"))
    }

    @Test("a file that is there is not written over, and then nothing is kept")
    func noOverwriting() async throws {
      let file = try scratch.file("vapid.pem", "mine")
      let (code, _, errors) = try await set(["--generate", "--private-key", file])
      #expect(code == 64 && errors.contains("never overwritten"), "\(errors)")
      #expect(try String(contentsOfFile: file, encoding: .utf8) == "mine")
      let list = try await BelfryProcess.run(["credential", "list"] + data)
      #expect(list.output.contains("0 credentials"))
    }

    @Test("a pair is read as PEM, base 64 URL, and the JSON of web-push")
    func forms() async throws {
      let key = try P256PrivateKey()
      let publicKey = Base64URL.encode(try key.publicKey().point)
      let scalar = Base64URL.encode(try key.scalar())
      for text in [
        try key.pem(), scalar + "\n",
        #"{"publicKey":"\#(publicKey)","privateKey":"\#(scalar)"}"#,
      ] {
        let file = try scratch.file("key", text)
        let (code, output, errors) = try await set(["--private-key", file, "--json"])
        #expect(code == 0, "\(errors)")
        #expect(output.contains(#""applicationServerKey":"\#(publicKey)""#), "\(output)")
      }
      let file = try scratch.file("key", scalar)
      let other = Base64URL.encode(try P256PrivateKey().publicKey().point)
      let wrong = try await set(["--private-key", file, "--public-key", other])
      #expect(wrong.code == 1 && wrong.errors.contains("does not belong"), "\(wrong.errors)")
    }
  }
}

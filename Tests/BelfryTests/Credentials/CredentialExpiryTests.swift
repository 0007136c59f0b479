import Foundation
import HubTesting
import Testing

extension CommandLineSuite {
  @Suite("Certificates that end") struct CredentialExpiryTests {
    @Test("set and list tell the end, and the server warns of it when it starts")
    func expiry() async throws {
      let scratch = try Scratch()
      let data = ["--data", scratch.path + "/data"]
      #expect(try await BelfryProcess.run(["hub", "create", "news"] + data).code == 0)
      func archive(_ name: String, days: Double) throws -> String {
        let text = try CertificateArchive.make(
          lifetime: days * 86_400, now: Date(), password: "pässword")
        let file = scratch.path + "/" + name
        try #require(Data(base64Encoded: text)).write(to: URL(fileURLWithPath: file))
        return file
      }
      func set(
        _ file: String, password: String?
      ) async throws -> (code: Int32, output: String, errors: String) {
        try await BelfryProcess.run(
          ["credential", "set", "apns", "--certificate", file] + data,
          environment: password.map { ["BELFRY_CERTIFICATE_PASSWORD": $0] } ?? [:])
      }
      let soon = try archive("soon.p12", days: 12.5)
      let none = try await set(soon, password: nil)
      #expect(none.code == 1 && none.errors.contains("needs its password"), "\(none.errors)")
      let wrong = try await set(soon, password: "guess")
      #expect(wrong.code == 1 && wrong.errors.contains("does not open"), "\(wrong.errors)")
      #expect(!wrong.errors.contains("guess"))
      let over = try await set(try archive("over.p12", days: -1), password: "pässword")
      #expect(over.code == 1 && over.errors.contains("has expired"), "\(over.errors)")
      let good = try await set(soon, password: "pässword")
      #expect(good.code == 0 && good.output.contains("renew it soon"), "\(good)")
      let list = try await BelfryProcess.run(["credential", "list"] + data)
      #expect(list.output.contains("expires 20"), "\(list.output)")
      let json = try await BelfryProcess.run(["credential", "list", "--json"] + data)
      #expect(json.output.contains(#""expiresAt":"20"#), "\(json.output)")

      let server = try BelfryProcess(["serve", "--port", "0"] + data)
      let line = try await server.note { $0.contains("credential.expires") }
      #expect(line.contains("hub=news platform=apns") && line.contains("days=12"), "\(line)")
      #expect(try await server.end() == 0)
    }

    @Test("one that has ended since the last start does not keep the server from its other hubs")
    func restart() async throws {
      let scratch = try Scratch()
      let archive = try CertificateArchive.make(
        lifetime: -3600, now: Date(), password: "pw")
      try #require(Data(base64Encoded: archive)).write(
        to: URL(fileURLWithPath: scratch.path + "/push.p12"))
      let file = try scratch.file(
        "belfry.json",
        #"{"hubs":[{"name":"news","apns":{"certificateFile":"push.p12","password":"pw"}}]}"#)
      let server = try BelfryProcess([
        "serve", "--port", "0", "--config", file, "--data", scratch.path + "/data",
      ])
      let line = try await server.note { $0.contains("credential.expired") }
      #expect(line.contains("hub=news platform=apns"), "\(line)")
      _ = try await server.note { $0.contains("hubs: news") }
      #expect(try await server.end() == 0)
    }
  }
}

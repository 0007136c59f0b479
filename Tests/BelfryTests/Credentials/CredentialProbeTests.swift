import Foundation
import HubTesting
import PushEmulator
import Testing

extension CommandLineSuite {
  @Suite("Trying credentials from the command line") struct CredentialProbeTests {
    /// An emulator, a data directory with a hub, and the words that name both.
    private struct Stage {
      let emulator: EmulatorServer
      let addresses: EmulatorAddresses
      let scratch: Scratch
      let hub: [String]

      func run(
        _ words: [String], environment: [String: String] = [:]
      ) async throws -> (code: Int32, output: String, errors: String) {
        try await BelfryProcess.run(
          ["credential"] + words + hub, environment: environment)
      }
    }

    private func withStage(_ body: (Stage) async throws -> Void) async throws {
      let scratch = try Scratch()
      let data = ["--data", scratch.path + "/data"]
      #expect(try await BelfryProcess.run(["hub", "create", "news"] + data).code == 0)
      let emulator = EmulatorServer(.onFreePorts)
      let addresses = try await emulator.start()
      let authority = try scratch.file("ca.pem", addresses.authorityPEM)
      do {
        try await body(
          Stage(
            emulator: emulator, addresses: addresses, scratch: scratch,
            hub: data + ["--trust", authority, "--service-hosts", "localhost,127.0.0.1"]))
      } catch {
        await emulator.stop()
        throw error
      }
      await emulator.stop()
    }

    @Test("what the service accepts is kept, and can be tried again")
    func accepted() async throws {
      try await withStage { stage in
        let app = try stage.emulator.app()
        let key = try stage.scratch.file("AuthKey_\(app.keyID).p8", app.p8)
        let project = try stage.emulator.firebaseProject()
        let members = [
          "type": "service_account", "project_id": project.projectID,
          "client_email": project.clientEmail, "private_key": project.privateKey,
          "private_key_id": project.privateKeyID, "token_uri": project.tokenURI,
        ]
        let account = try stage.scratch.file(
          "account.json",
          String(decoding: try JSONSerialization.data(withJSONObject: members), as: UTF8.self))
        let windows = try stage.emulator.windowsApp()
        for (platform, words, proof) in [
          (
            "apns",
            [
              "--key", key, "--team-id", app.teamID, "--bundle-id", app.bundleID, "--endpoint",
              stage.addresses.apnsProduction,
            ], "Apple accepts"
          ),
          (
            "fcm", ["--service-account", account, "--endpoint", project.endpoint], "Google accepts"
          ),
          (
            "wns",
            [
              "--package-sid", windows.packageSID, "--secret", windows.secret, "--token-url",
              windows.tokenURL,
            ], "Microsoft accepts"
          ),
          ("browser", ["--subject", "mailto:o@example.com", "--generate"], "subscription"),
        ] {
          let set = try await stage.run(["set", platform, "--probe"] + words)
          #expect(set.code == 0 && set.output.contains(proof), "\(set)")
          let again = try await stage.run(["probe", platform])
          #expect(again.code == 0 && again.output.contains(proof), "\(again)")
        }
      }
    }

    @Test("what the service refuses is not kept, and neither is what nobody answers for")
    func refused() async throws {
      try await withStage { stage in
        let xiaomi = try stage.emulator.xiaomiSecret()
        let good = ["set", "xiaomi", "--endpoint", xiaomi.endpoint]
        let kept = try await stage.run(
          good + ["--probe", "--json"], environment: ["BELFRY_CREDENTIAL_SECRET": xiaomi.appSecret])
        #expect(kept.code == 0 && kept.output.contains(#""probe":"accepted""#), "\(kept)")
        let refused = try await stage.run(good + ["--probe", "--secret", "wrong-one"])
        #expect(refused.code == 1 && refused.errors.contains("It is not kept"), "\(refused)")
        #expect(!refused.errors.contains("wrong-one"))
        let unreachable = try await stage.run([
          "set", "xiaomi", "--probe", "--secret", "x", "--endpoint", "https://localhost:1",
        ])
        #expect(unreachable.code == 69 && unreachable.errors.contains("cannot be reached"))
        // The good one is still there.
        let again = try await stage.run(["probe", "xiaomi", "--json"])
        #expect(again.code == 0 && again.output.contains(#""verdict":"accepted""#), "\(again)")
        let none = try await stage.run(["probe", "adm"])
        #expect(none.code == 1 && none.errors.contains("belfry credential set adm"))
        // Without a probe it is kept as it is, and the next probe says so.
        #expect(try await stage.run(good + ["--secret", "wrong"]).code == 0)
        #expect(try await stage.run(["probe", "xiaomi"]).code == 1)
      }
    }
  }
}

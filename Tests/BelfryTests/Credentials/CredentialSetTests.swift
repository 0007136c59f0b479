import Cryptography
import Foundation
import HubTesting
import Testing

extension CommandLineSuite {
  @Suite("Setting credentials") struct CredentialSetTests {
    @Test("every platform takes what people have, checks it, and shows no secret again")
    func platforms() async throws {
      let scratch = try Scratch()
      let data = ["--data", scratch.path + "/data"]
      let vapid = try scratch.file("vapid.pem", try P256PrivateKey().pem())
      let key = try RSAPrivateKey().pem().replacingOccurrences(of: "\n", with: #"\n"#)
      let account = try scratch.file(
        "account.json",
        #"{"project_id":"p-1","client_email":"a@p-1.iam.gserviceaccount.com","private_key":"\#(key)"}"#
      )
      #expect(try await BelfryProcess.run(["hub", "create", "news"] + data).code == 0)
      func set(_ words: [String]) async throws -> (code: Int32, errors: String) {
        let (code, _, errors) = try await BelfryProcess.run(["credential", "set"] + words + data)
        return (code, errors)
      }
      for words in [
        ["fcm", "--service-account", account],
        ["browser", "--subject", "mailto:ops@example.com", "--private-key", vapid],
        ["wns", "--package-sid", "ms-app://s-1-15-2-1-2-3", "--secret", "hidden-1"],
        ["adm", "--client-id", "amzn1.application-oa2-client.1", "--secret", "hidden-2"],
        ["baidu", "--api-key", "key", "--secret", "hidden-3"], ["xiaomi", "--secret", "hidden-4"],
      ] {
        let (code, errors) = try await set(words)
        #expect(code == 0, "\(words[0]): \(errors)")
      }
      for (words, reason) in [
        (["fcm", "--service-account", vapid], "service account"),
        (["browser", "--subject", "ops", "--private-key", vapid], "--subject must be"),
        (["wns", "--package-sid", "x"], "--secret"), (["gcm"], "not served"),
      ] {
        let (code, errors) = try await set(words)
        #expect(code != 0 && errors.contains(reason), "\(words): \(code) \(errors)")
      }
      let (code, output, _) = try await BelfryProcess.run(["credential", "list"] + data)
      #expect(code == 0 && output.contains("6 credentials"), "\(output)")
      #expect(!output.contains("hidden") && !output.contains("PRIVATE"))
    }
  }
}

import Cryptography
import Foundation
import HubTesting
import Testing
import Wire

extension CommandLineSuite {
  @Suite("Words and files of credentials") struct CredentialWordsTests {
    private func run(_ words: [String]) async throws -> (code: Int32, errors: String) {
      let (code, _, errors) = try await BelfryProcess.run(["credential"] + words)
      return (code, errors)
    }

    @Test(
      "options that make no sense are reported before anything is opened",
      arguments: [
        (["set", "apns", "--service-account", "x"], "--service-account is an option of fcm"),
        (["set", "fcm", "--key", "x.p8"], "--key is an option of apns"),
        (["set", "fcm", "--generate"], "--generate is an option of web"),
        (["set", "xiaomi", "--client-id", "x"], "--client-id is an option of wns, adm"),
        (["set", "apns"], "--key FILE (.p8) or --certificate FILE"),
        (["set", "browser"], "--generate"),
        (["set", "browser", "--subject", "mailto:a@b.c"], "--private-key FILE, or --generate"),
        (
          ["set", "browser", "--subject", "mailto:a@b.c", "--generate", "--public-key", "x"],
          "--public-key"
        ),
        (["set", "wns", "--package-sid", "ms-app://s-1-15-2-1"], "--secret is missing"),
        (["set", "wns", "--tenant-id", "t"], "--client-id is missing"),
        (["set", "wns", "--tenant-id", "t", "--package-sid", "p"], "exclude each other"),
        (["set", "adm", "--client-id", "c"], "--client-secret is missing"),
        (["set", "adm", "--secret", "a", "--client-secret", "b"], "exclude each other"),
        (["set", "baidu", "--secret", "a"], "--api-key is missing"),
        (["delete", "palm"], "it is one of apns, fcm, web"),
        (["probe", "palm"], "it is one of apns, fcm, web"),
        (["set", "mpns"], "it is one of apns, fcm, web"),
      ])
    func words(words: [String], complaint: String) async throws {
      let (code, errors) = try await run(words)
      #expect(code == 64)
      #expect(errors.contains(complaint), "\(errors)")
    }

    @Test("every platform has its names, and all commands take them")
    func aliases() async throws {
      let scratch = try Scratch()
      let data = ["--data", scratch.path]
      #expect(try await BelfryProcess.run(["hub", "create", "h"] + data).code == 0)
      let key = try scratch.file("key", Base64URL.encode(try P256PrivateKey().scalar()))
      for name in ["web", "browser", "WebPush"] {
        #expect(
          try await run(
            ["set", name, "--subject", "mailto:a@example.com", "--private-key", key] + data
          ).code == 0)
        #expect(try await run(["probe", name] + data).code == 0)
        #expect(try await run(["delete", name] + data).code == 0)
      }
      for name in ["fcm", "fcmv1", "apple", "windows", "amazon", "gcm", "mpns"] {
        let (code, errors) = try await run(["delete", name] + data)
        #expect(code == 1 && errors.contains("no credential"), "\(name): \(errors)")
      }
    }

    @Test("a file of another kind is told where it belongs, and nothing of it is shown")
    func files() async throws {
      let scratch = try Scratch()
      let p8 = try scratch.file("AuthKey_ABC123DEFG.p8", try P256PrivateKey().pem())
      let rsa = try scratch.file("rsa.pem", try RSAPrivateKey().pem())
      let p12 = scratch.path + "/push.p12"
      let archive: [UInt8] = [0x30, 0x82, 0x01, 0x00, 0x02, 0x01, 0x03, 0x30, 0x82]
      try Data(archive + Array(repeating: 0, count: 256)).write(to: URL(fileURLWithPath: p12))
      let authority = try CertificateAuthority(commonName: "Test")
      let certificate = try scratch.file("push.pem", authority.certificate.pem)
      let publicKey = try scratch.file("public.pem", try P256PrivateKey().publicKey().pem)
      let encrypted = try scratch.file(
        "locked.pem",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----")
      let account = try scratch.file(
        "account.json", #"{"type":"service_account","private_key":"hidden"}"#)
      let appFile = try scratch.file("google-services.json", #"{"project_info":{},"client":[]}"#)
      let plist = try scratch.file(
        "GoogleService-Info.plist", "<plist><dict><key>GOOGLE_APP_ID</key></dict></plist>")
      let empty = try scratch.file("empty", "")
      let subject = ["--subject", "mailto:a@example.com"]
      let ids = ["--team-id", "DEF123GHIJ", "--bundle-id", "com.example.app"]
      for (words, complaint) in [
        (["apns", "--key", p12] + ids, "is a .p12 archive, not a .p8 key"),
        (["apns", "--key", encrypted] + ids, "openssl pkcs8"),
        (["apns", "--key", account] + ids, "credential of fcm"),
        (["apns", "--key", certificate] + ids, "not a .p8"),
        (["apns", "--key", empty] + ids, "is empty"),
        (["apns", "--key", scratch.path] + ids, "Is a directory"),
        (["apns", "--key", p8, "--team-id", "DEF123GHIJ"], "--bundle-id"),
        (
          ["apns", "--key", p8, "--team-id", "DEF", "--bundle-id", "com.example"],
          "--team-id must be 10 letters"
        ),
        (["apns", "--key", p8, "--password", "x"] + ids, "belongs to a .p12"),
        (["apns", "--certificate", p8], "give a .p8 as the key"),
        (["apns", "--certificate", certificate], "without its private key"),
        (["apns", "--certificate", p12] + ids, "names its app itself"),
        (["apns", "--certificate", p12], "push.p12"),
        (["apns", "--certificate", account], "credential of fcm"),
        (["fcm", "--service-account", appFile], "configuration of the app"),
        (["fcm", "--service-account", plist], "configuration of the app"),
        (["fcm", "--service-account", p8], "service account"),
        (["fcm", "--service-account", scratch.path + "/none"], "No such file"),
        (["browser", "--private-key", publicKey] + subject, "public half"),
        (["browser", "--private-key", rsa] + subject, "P-256"),
        (["browser", "--private-key", account] + subject, "credential of fcm"),
        (["browser", "--private-key", p12] + subject, "VAPID"),
      ] {
        let (code, errors) = try await run(["set"] + words)
        // What cannot be read is a fault of the words.
        let isUnread = ["No such file", "Is a directory"].contains(complaint)
        #expect(
          code == (isUnread ? 64 : 1) && errors.contains(complaint),
          "\(words[0...2]): \(code) \(errors)")
        #expect(!errors.contains("hidden") && !errors.contains("BEGIN"))
      }
    }
  }
}

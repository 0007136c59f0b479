import Foundation
import HubTesting
import Testing

extension CommandLineSuite {
  /// The device SDK in `belfry phone`: docs/device.md.
  @Suite("Phones that live on") struct PhoneAppTests {
    /// A phone with a state directory, beside `belfry up`.
    private struct Place {
      let up: UpLine
      let folder: Scratch
      var state: String { folder.path + "/phone" }

      init(up: UpLine) throws {
        self.up = up
        folder = try Scratch()
      }

      func start(_ words: [String]) throws -> BelfryProcess {
        let access = ["--connection", up.hub.connectionStrings.full, "--hub", up.hub.name]
        let phone = try BelfryProcess(
          ["phone", "--json", "--control", up.emulator.control, "--state", state] + words + access)
        phone.readErrors()
        return phone
      }

      /// The installations at the hub.
      func installations() async throws -> String {
        let (_, output, errors) = try await BelfryProcess.run([
          "installation", "list", "--json", "--connection", up.hub.connectionStrings.full, "--hub",
          up.hub.name,
        ])
        #expect(errors.isEmpty || !errors.contains("belfry:"), "\(errors)")
        return output
      }
    }

    @Test("a phone with a state directory is the same installation and device at the next start")
    func restart() async throws {
      let (process, up) = try await BelfryProcess.up()
      let place = try Place(up: up)
      var announced: [String] = []
      for (words, beginning) in [
        ([], "first"), ([], "continued"), (["--reinstall"], "reinstalled"),
      ] as [([String], String)] {
        let phone = try place.start(words)
        announced.append(try await phone.line { $0.contains("installationId") })
        _ = try await phone.note { $0.contains("storage: \(beginning)") }
        _ = try await phone.note { $0.contains("saved, fingerprint") }
        phone.signal(SIGINT)
        _ = try await phone.exitCode()
      }
      #expect(Set(announced).count == 1, "\(announced)")
      #expect(try await process.end() == 0)
    }

    @Test("a phone with another's backup is an installation of its own")
    func restored() async throws {
      let (process, up) = try await BelfryProcess.up()
      let place = try Place(up: up)
      let old = try place.start(["--id", "old-phone"])
      _ = try await old.line { $0.contains("installationId") }
      old.signal(SIGINT)
      _ = try await old.exitCode()
      let access = ["--connection", up.hub.connectionStrings.full, "--hub", up.hub.name]
      let words = ["--control", up.emulator.control, "--state", place.state + "-new"]
      let new = try BelfryProcess(
        ["phone", "--json", "--restore-from", place.state] + words + access)
      new.readErrors()
      let line = try await new.line { $0.contains("installationId") }
      #expect(!line.contains("old-phone"))
      _ = try await new.note { $0.contains("storage: restored") }
      new.signal(SIGINT)
      _ = try await new.exitCode()
      #expect(try await process.end() == 0)
    }

    @Test("one that is locked and offline first registers later, under the same id")
    func lockedAndOffline() async throws {
      let (process, up) = try await BelfryProcess.up()
      let place = try Place(up: up)
      let phone = try place.start(["--locked", "1s", "--offline", "2s", "--id", "phone-1"])
      _ = try await phone.note { $0.contains("waiting until the device is unlocked") }
      _ = try await phone.note { $0.contains("failed, unreachable") }
      // Each note comes after the one before.
      _ = try await phone.note { $0.contains("the phone has a network") }
      let line = try await phone.line { $0.contains("installationId") }
      #expect(line.contains(#""installationId":"phone-1""#))
      #expect(try await place.installations().contains("phone-1"))
      phone.signal(SIGINT)
      _ = try await phone.exitCode()
      #expect(try await process.end() == 0)
    }

    @Test("another handle is registered in place of the old one")
    func rotation() async throws {
      let (process, up) = try await BelfryProcess.up()
      let place = try Place(up: up)
      let phone = try place.start(["--rotate-every", "4s"])
      let first = try await phone.line { $0.contains("installationId") }
      let note = try await phone.note { $0.contains("another handle: ") }
      let handle = try #require(note.split(separator: " ").last).uppercased()
      #expect(!first.uppercased().contains(handle))
      try await withLimit(.seconds(30), "the new handle at the hub") {
        while try await !place.installations().uppercased().contains(handle) {}
      }
      phone.signal(SIGINT)
      _ = try await phone.exitCode()
      #expect(try await process.end() == 0)
    }

    @Test("a push is written as a file for a simulator")
    func simulatorFile() async throws {
      let (process, up) = try await BelfryProcess.up()
      let place = try Place(up: up)
      let files = place.state + "/files"
      let phone = try place.start(["--simctl", files, "--count", "1"])
      _ = try await phone.line { $0.contains("installationId") }
      let sent = try await BelfryProcess.run([
        "send", "--template", "message=Hi", "--tags", "12345", "--connection",
        up.hub.connectionStrings.full, "--hub", up.hub.name,
      ])
      #expect(sent.code == 0, "\(sent.errors)")
      #expect(try await phone.exitCode() == 0)
      let file = try String(contentsOfFile: files + "/push-1.apns", encoding: .utf8)
      #expect(file == #"{"Simulator Target Bundle":"com.example.app","aps":{"alert":"Hi"}}"#)
      #expect(try await process.end() == 0)
    }

    @Test("the next user's registration has nothing of the former one")
    func nextUser() async throws {
      let (process, up) = try await BelfryProcess.up()
      let place = try Place(up: up)
      let phone = try place.start([
        "--user", "anna", "--then-user", "bob", "--permission", "provisional",
      ])
      _ = try await phone.line { $0.contains("installationId") }
      let installations = try await place.installations()
      #expect(installations.contains("bob") && !installations.contains("anna"))
      #expect(installations.contains("push:provisional"))
      phone.signal(SIGINT)
      _ = try await phone.exitCode()
      #expect(try await process.end() == 0)
    }

    @Test(
      "options that do not go together are told",
      arguments: [
        (["--reinstall"], "--reinstall needs --state DIR"),
        (["--restore-from", "x"], "--restore-from needs --state DIR"),
        (["--then-user", "b"], "--then-user needs the first user"),
        (["--platform", "fcm", "--simctl", "x"], "--simctl is for apns phones"),
        (["--permission", "maybe"], "--permission must be one of: undetermined, denied"),
        (["--offline", "2w"], "--offline must be a time"),
        (["--id", "a/b"], "--id 'a/b' is not a valid installation id"),
        (["--platform", "fcm", "--sandbox"], "--sandbox and --topic are for apns phones"),
        (["--state", "/dev/null"], "--state: '/dev/null' cannot be used as a directory"),
        (["--simctl", "/dev/null/x"], "--simctl: '/dev/null/x' cannot be used as a directory"),
      ])
    func wrongWords(words: [String], complaint: String) async throws {
      let (code, _, errors) = try await BelfryProcess.run(["phone"] + words)
      #expect(code == 64 && errors.contains(complaint), "\(errors)")
    }
  }
}

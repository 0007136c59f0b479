import Authentication
import Foundation
import SecurePushBackend

struct BackendUserAddCommand: ResultCommand {
  static let about = CommandHelp(
    "backend user add", "add a user of the backend, or change a password",
    discussion: """
      Asks for the password on a terminal. Only its scrypt hash is stored, in a file that only its
      owner can read; a running backend sees the change within a second. A new password ends the
      user's sign-ins: their devices have to sign in again.
      """,
    examples: [
      "belfry backend user add alice",
      "echo \"$PASSWORD\" | belfry backend user add alice --password-file -",
    ])

  @Argument("NAME", "letter case does not count", .typedUser) var user: UserName
  let store = BackendStoreOptions(database: false)
  @Flag("--json", "print one JSON value for scripts") var json
  @Option(
    "--password-file", "FILE", "read the password from the file's first line; - for stdin")
  var passwordFile: String?

  func result(in context: CommandContext) async throws -> CommandResult {
    if !store.$users.isGiven { _ = try DataDirectory.make(at: store.directory) }
    let path = store.userFile
    let password = try NewPassword.read(passwordFile, of: user.text)
    let isNew: Bool
    do { isNew = try UserFile.set(password, of: user, in: path) } catch {
      throw CommandFailure("\(error)", exitCode: .usage)
    }
    return CommandResult(
      ["user": user.text, "file": path],
      ["\(isNew ? "added" : "changed the password of") \(user) in \(path)"])
  }
}

/// The new password of a user.
enum NewPassword {
  /// - Parameter file: The file whose first line is the password; `nil` asks on the terminal.
  static func read(_ file: String?, of user: String) throws -> String {
    let password = try file.map(firstLine) ?? ask("password for \(user)")
    try check(password)
    return password
  }

  static func check(_ password: String) throws {
    guard password.utf8.count >= 8 else {
      throw CommandFailure("the password must have at least 8 characters", exitCode: .usage)
    }
  }

  static func firstLine(of file: String) throws -> String {
    let text = String(decoding: try TextInput.read(file), as: UTF8.self)
    return String(text.prefix { $0 != "\n" && $0 != "\r\n" })
  }

  /// Asks twice on the terminal.
  static func ask(_ question: String) throws -> String {
    guard isatty(0) == 1 else {
      throw UsageError("there is no terminal to ask on; give --password-file FILE")
    }
    guard let first = HiddenInput.ask("\(question): "),
      let second = HiddenInput.ask("again: ")
    else { throw CommandFailure("no password was given", exitCode: .usage) }
    guard first == second else {
      throw CommandFailure("the two passwords differ", exitCode: .usage)
    }
    return first
  }
}

struct BackendUserListCommand: ResultCommand {
  static let about = CommandHelp(
    "backend user list", "list the users of the backend", examples: ["belfry backend user list"])

  let store = BackendStoreOptions(database: false)
  @Flag("--json", "print one JSON value for scripts") var json

  func result(in context: CommandContext) async throws -> CommandResult {
    let path = store.userFile
    let users: [UserName]
    do { users = try UserFile(path: path).users } catch {
      throw CommandFailure("\(error)", exitCode: .usage)
    }
    return CommandResult(
      ["users": users.map(\.text)], users.map(\.text) + [users.count.counted("user")])
  }
}

struct BackendUserDeleteCommand: ResultCommand {
  static let about = CommandHelp(
    "backend user delete", "remove a user from the user file",
    discussion: """
      The user can no longer sign in, and the tokens of their devices are invalid. To erase the data
      that the backend stores about them, call DELETE /api/users/NAME as an operator.
      """,
    examples: ["belfry backend user delete alice"])

  @Argument("NAME", "the user", .typedUser) var user: UserName
  let store = BackendStoreOptions(database: false)
  @Flag("--json", "print one JSON value for scripts") var json

  func result(in context: CommandContext) async throws -> CommandResult {
    let path = store.userFile
    let isRemoved: Bool
    do { isRemoved = try UserFile.remove(user, from: path) } catch {
      throw CommandFailure("\(error)", exitCode: .usage)
    }
    guard isRemoved else { throw CommandFailure("there is no user '\(user)' in \(path)") }
    return CommandResult(["deleted": user.text], ["deleted \(user)"])
  }
}

struct BackendUserRevokeCommand: ResultCommand {
  static let about = CommandHelp(
    "backend user revoke", "end every sign-in of a user: a device was lost",
    discussion: """
      The tokens that POST /api/token gave to the user's devices are refused from now on, also by a
      running backend. The password stays: if it may be known, change it too, with
      `belfry backend user add NAME`. Only the provider can revoke tokens of an OpenID provider.
      Hub tokens (POST /api/token/hub) expire an hour after they were issued.
      """,
    examples: ["belfry backend user revoke alice"])

  @Argument("NAME", "the user: alice, or subject:… for one whom a token names", .anyUser)
  var user: UserName
  let store = BackendStoreOptions(users: false)
  @Flag("--json", "print one JSON value for scripts") var json

  func result(in context: CommandContext) async throws -> CommandResult {
    let store = try await store.open(context)
    let count = try await store.revoke(
      user,
      audit: AuditLine(
        at: Date(), actor: "command line", action: "revoke", subject: user.key, outcome: "done",
        address: ""))
    await store.close()
    struct Revoked: Encodable {
      let user: String
      let signIns: Int
    }
    return CommandResult(
      Revoked(user: user.key, signIns: count), ["ended \(count.counted("sign-in")) of \(user)"])
  }
}

struct BackendAuditCommand: ResultCommand {
  static let about = CommandHelp(
    "backend audit", "show who asked the backend for what",
    examples: ["belfry backend audit --user alice"])

  let store = BackendStoreOptions(users: false)
  @Option(
    "--user", "NAME", "only lines by this user: alice, or subject:… for a token's", .anyUser)
  var user: UserName?
  @Option("--limit", "N", "so many lines, the newest first", .integer(1...100_000)) var limit = 100
  @Flag("--json", "print one JSON value for scripts") var json

  func result(in context: CommandContext) async throws -> CommandResult {
    let store = try await store.open(context)
    let lines = try await store.audit(of: user, limit: limit)
    await store.close()
    struct Line: Encodable {
      let at, actor, action, outcome, subject, address: String

      var text: String {
        "\(at)  \(actor.padded(to: 16)) \(action.padded(to: 10)) \(outcome.padded(to: 11)) "
          + "\(subject.padded(to: 24)) \(address)"
      }
    }
    let shown = lines.map {
      Line(
        at: $0.at.formatted(.iso8601), actor: $0.actor, action: $0.action, outcome: $0.outcome,
        subject: $0.subject, address: $0.address)
    }
    return CommandResult(["lines": shown], shown.map(\.text))
  }
}

/// Reads a line from the terminal without echo.
enum HiddenInput {
  static func ask(_ prompt: String) -> String? {
    var settings = termios()
    guard tcgetattr(0, &settings) == 0 else { return nil }
    let before = settings
    settings.c_lflag &= ~tcflag_t(ECHO)
    // Before the prompt: an immediate answer by a person or a script must be neither shown nor
    // lost.
    tcsetattr(0, TCSAFLUSH, &settings)
    FileHandle.standardError.write(Data(prompt.utf8))
    defer {
      var before = before
      tcsetattr(0, TCSADRAIN, &before)
      FileHandle.standardError.write(Data("\n".utf8))
    }
    return readLine(strippingNewline: true)
  }
}

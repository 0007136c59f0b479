import Authentication
import Foundation
import HubServer

/// The selection of the operator file for a command.
private struct OperatorOptions: ParameterGroup {
  @Option("--data", "DIR", "the data directory of the hub (or BELFRY_DATA)") var data: String?
  @Option("--config", "FILE", "a configuration file, which names the data directory, or the file")
  var config: String?
  @Flag("--json", "print one JSON value for scripts") var json

  let note = "A server that runs sees the change within a second."

  func file(in context: CommandContext) throws -> String {
    let location = HubLocation(data: data, config: config)
    if let file = try location.configuration(context.environment).text(.operators) { return file }
    return try DataDirectory.existing(at: try location.local(in: context).directory.path).operators
  }
}

/// Turns an error of the operator file into a failure.
private func editing<Value>(_ work: () throws -> Value) throws -> Value {
  do { return try work() } catch let fault as UserFile.Fault {
    throw CommandFailure("\(fault)", exitCode: .usage)
  }
}

struct OperatorAddCommand: ResultCommand {
  static let about = CommandHelp(
    "operator add", "let somebody sign in at the portal, or change their password and roles",
    discussion: """
      Asks for the password on a terminal. Only its scrypt hash is kept, in a file that only its
      owner can read. Another password ends the operator's sessions.

      With an OpenID provider (the setting oidcIssuer) there is no password: NAME is subject:ID, or
      email:ADDRESS, which is valid if the provider states that it has verified the address. Both
      are case-sensitive. An address can pass to somebody else; a subject cannot.

      A viewer reads everything except keys; a sender also sends, schedules and aborts; a manager
      does everything in the hub. A manager of * may also create hubs.
      """,
    examples: [
      "belfry operator add ann --roles '*=manager'",
      "belfry operator add subject:248289761001 --roles '*=manager'",
      "echo \"$PASSWORD\" | belfry operator add bob --roles '*=viewer,shop=sender' --password-file -",
    ])

  @Argument("NAME", "of a name with a password letter case does not count", .operatorUser)
  var user: UserName
  private let options = OperatorOptions()
  @Option(
    required: "--roles", "LIST",
    "HUB=ROLE, separated by commas; * is every hub; viewer, sender or manager",
    Reader(show: \.description) { text, name throws(UsageError) in
      if let roles = OperatorRoles(text) { return roles }
      throw UsageError(
        "\(name): '\(text)' is not a list of roles; write '*=viewer' or 'shop=manager,news=sender'")
    }) var roles: OperatorRoles
  @Option(
    "--password-file", "FILE", "read the password from the file's first line; - for stdin")
  var passwordFile: String?

  func result(in context: CommandContext) async throws -> CommandResult {
    let file = try options.file(in: context)
    guard user.kind == .name || passwordFile == nil else {
      throw UsageError(
        "--password-file: \(user) signs in at the OpenID provider, without a password")
    }
    let password = user.kind == .name ? try NewPassword.read(passwordFile, of: user.text) : nil
    let isNew = try editing {
      try UserFile.set(
        password, of: user, remark: roles.description, in: file, form: .operators)
    }
    return CommandResult(
      ["user": "\(user)", "roles": roles.description, "file": file],
      ["\(isNew ? "added" : "changed") \(user): \(roles)"])
  }
}

struct OperatorListCommand: ResultCommand {
  static let about = CommandHelp(
    "operator list", "list who may sign in at the portal", examples: ["belfry operator list"])

  private let options = OperatorOptions()

  func result(in context: CommandContext) async throws -> CommandResult {
    let file = try options.file(in: context)
    let operators = try editing { try UserFile(path: file, form: .operators) }
    var lines: [[String: String]] = []
    for user in operators.users {
      lines.append(["user": "\(user)", "roles": await operators.remark(on: user) ?? ""])
    }
    let rows = lines.map { ($0["user"] ?? "").padded(to: 24) + " " + ($0["roles"] ?? "") }
    return CommandResult(["operators": lines], rows + [lines.count.counted("operator")])
  }
}

struct OperatorDeleteCommand: ResultCommand {
  static let about = CommandHelp(
    "operator delete", "let somebody sign in no more; their sessions end",
    examples: ["belfry operator delete ann"])

  @Argument("NAME", "the operator", .operatorUser) var user: UserName
  private let options = OperatorOptions()

  func result(in context: CommandContext) async throws -> CommandResult {
    let file = try options.file(in: context)
    let isRemoved = try editing {
      try UserFile.remove(user, from: file, form: .operators)
    }
    guard isRemoved else { throw CommandFailure("there is no operator '\(user)' in \(file)") }
    return CommandResult(["removed": "\(user)"], ["removed \(user)"])
  }
}

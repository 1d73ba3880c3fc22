<#
.SYNOPSIS
Installs toolcrib for the present user of Windows, from an archive of a release, or removes it.

.DESCRIPTION
The archive is chosen by the processor and compared with the release's SHA256SUMS. With a public key, here or in the published
script, minisign verifies the signature of SHA256SUMS first. The program goes to %LOCALAPPDATA%\Programs\toolcrib, its completions
beside it. Nothing else is changed, and no administrator is needed.

.PARAMETER Version
Version to install; the default is that of this script, or the one in the folder of -From.

.PARAMETER From
Address (https://) or folder with the files of a release.

.PARAMETER Dir
Folder of the program; also TOOLCRIB_INSTALL_DIR.

.PARAMETER Key
Public key of minisign, or a file with it. A given key demands a valid signature.

.PARAMETER Uninstall
Removes the installed files.

.EXAMPLE
powershell -ExecutionPolicy Bypass -File install.ps1 -From .\release

.EXAMPLE
powershell -ExecutionPolicy Bypass -File install.ps1 -Uninstall
#>
[CmdletBinding()]
param(
    [string]$Version = '',
    [string]$From = '',
    [string]$Dir = '',
    [string]$Key = '',
    [switch]$Uninstall
)

Set-StrictMode -Version 2.0
$ErrorActionPreference = 'Stop'
# The progress bar makes downloads of Windows PowerShell slow.
$ProgressPreference = 'SilentlyContinue'

$Published = @{
    Version  = '@version@'
    Releases = '@releases@'
    Key      = '@public_key@'
}

function Stop-Install([string]$Reason, [string]$Hint = '') {
    if ($Hint) { throw "$Reason`nhint: $Hint" }
    throw $Reason
}

# A value that the packing left open counts as empty.
function Get-Published([string]$Name) {
    $value = $Published[$Name]
    if ($value -match '^@.*@$') { return '' }
    return $value
}

# Processors whose programs run here, the best first: Windows for ARM also runs programs for x86-64.
function Get-Processor {
    $processor = $env:PROCESSOR_ARCHITECTURE
    if ($env:PROCESSOR_ARCHITEW6432) { $processor = $env:PROCESSOR_ARCHITEW6432 }
    switch ($processor) {
        'AMD64' { return @('x86_64') }
        'ARM64' { return @('aarch64', 'x86_64') }
        default { Stop-Install "there is no archive for the processor ``$processor``" 'build from source: cargo install --path cli' }
    }
}

# Copies a file of the release into the work folder.
function Get-ReleaseFile([string]$Source, [string]$Name, [string]$Work) {
    $target = Join-Path $Work $Name
    if ($Source -match '^[a-z]+://[^/]*@') { Stop-Install "``$Source`` holds a user name" }
    if ($Source -match '^(https://|http://(127\.0\.0\.1|localhost)[:/])') {
        [Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12
        Invoke-WebRequest -UseBasicParsing -Uri "$Source/$Name" -OutFile $target
    } elseif ($Source -match '^[a-z]+://') {
        Stop-Install "cannot download from ``$Source``" 'use https:// or a folder'
    } else {
        Copy-Item -LiteralPath (Join-Path $Source $Name) -Destination $target
    }
    return $target
}

# Verifies the signature of SHA256SUMS. A key that the caller names demands it; the one of the script needs a verifier here.
function Confirm-Signature([string]$Source, [string]$Work, [string]$PublicKey, [bool]$IsDemanded) {
    if (-not $PublicKey) {
        Write-Host 'signature: not checked, since no public key was given (-Key)'
        return
    }
    if (-not (Get-Command minisign -ErrorAction SilentlyContinue)) {
        if ($IsDemanded) { Stop-Install 'minisign was not found, and -Key demands a verified signature' 'install minisign' }
        Write-Host 'signature: not checked, since minisign was not found'
        return
    }
    $null = Get-ReleaseFile $Source 'SHA256SUMS.minisig' $Work
    $option = '-P'
    if (Test-Path -LiteralPath $PublicKey -PathType Leaf) { $option = '-p' }
    & minisign -Vqm (Join-Path $Work 'SHA256SUMS') $option $PublicKey
    if ($LASTEXITCODE -ne 0) { Stop-Install 'the signature of SHA256SUMS is not valid' 'nothing was installed: do not use these files' }
    Write-Host 'signature: valid'
}

# Name and digest of the first archive that SHA256SUMS lists for one of the processors.
function Find-Archive([string]$Sums, [string]$Wanted) {
    $lines = @(Get-Content -LiteralPath $Sums)
    foreach ($processor in (Get-Processor)) {
        foreach ($line in $lines) {
            if ($line -notmatch "^([0-9a-f]{64})  (toolcrib-([0-9][^/\\]*)-$processor-pc-windows-(?:gnu|msvc)\.zip)$") { continue }
            $found = @{ Digest = $Matches[1]; Name = $Matches[2]; Version = $Matches[3] }
            if (-not $Wanted -or $found.Version -eq $Wanted) { return $found }
        }
    }
    Stop-Install "SHA256SUMS lists no archive for Windows on $((Get-Processor) -join ' or ')$(if ($Wanted) { " of version $Wanted" })"
}

function Install-Release([string]$Source, [string]$Wanted, [string]$Target, [string]$PublicKey, [bool]$IsDemanded) {
    $work = Join-Path ([IO.Path]::GetTempPath()) "toolcrib-$([Guid]::NewGuid())"
    $null = New-Item -ItemType Directory -Path $work
    try {
        $sums = Get-ReleaseFile $Source 'SHA256SUMS' $work
        Confirm-Signature $Source $work $PublicKey $IsDemanded
        $archive = Find-Archive $sums $Wanted
        $file = Get-ReleaseFile $Source $archive.Name $work
        $digest = (Get-FileHash -LiteralPath $file -Algorithm SHA256).Hash.ToLowerInvariant()
        if ($digest -ne $archive.Digest) {
            Stop-Install "``$($archive.Name)`` has the SHA-256 $digest, and SHA256SUMS says $($archive.Digest)" 'nothing was installed: download it again'
        }
        Expand-Archive -LiteralPath $file -DestinationPath $work
        $unpacked = Join-Path $work ([IO.Path]::GetFileNameWithoutExtension($archive.Name))
        $answer = & (Join-Path $unpacked 'toolcrib.exe') --version
        if ($LASTEXITCODE -ne 0) { Stop-Install 'the program does not start here' }
        $null = New-Item -ItemType Directory -Force -Path $Target
        Copy-Item -Force -LiteralPath (Join-Path $unpacked 'toolcrib.exe') -Destination $Target
        Copy-Item -Force -LiteralPath (Join-Path $unpacked 'completions\toolcrib.ps1') -Destination $Target
        Write-Host "installed $answer in $Target"
    } finally {
        Remove-Item -Recurse -Force -LiteralPath $work
    }
    if (($env:Path -split ';') -notcontains $Target) {
        Write-Host 'hint: add it to your Path, and start a new shell:'
        Write-Host "  [Environment]::SetEnvironmentVariable('Path', [Environment]::GetEnvironmentVariable('Path', 'User') + ';$Target', 'User')"
    }
}

function Uninstall-Release([string]$Target) {
    $program = Join-Path $Target 'toolcrib.exe'
    if (-not (Test-Path -LiteralPath $program)) { Stop-Install "``$program`` does not exist: this script installed nothing here" }
    foreach ($name in 'toolcrib.exe', 'toolcrib.ps1') {
        $file = Join-Path $Target $name
        if (Test-Path -LiteralPath $file) {
            Remove-Item -Force -LiteralPath $file
            Write-Host "removed $file"
        }
    }
    if (-not (Get-ChildItem -Force -LiteralPath $Target)) { Remove-Item -LiteralPath $Target }
    Write-Host 'your settings, logs and tools were kept: toolcrib folders in %APPDATA% and %LOCALAPPDATA%'
}

function Start-Install {
    $target = $Dir
    if (-not $target) { $target = $env:TOOLCRIB_INSTALL_DIR }
    if (-not $target) { $target = Join-Path $env:LOCALAPPDATA 'Programs\toolcrib' }
    if ($Uninstall) { Uninstall-Release $target; return }

    $wanted = $Version -replace '^v', ''
    if (-not $wanted) { $wanted = Get-Published 'Version' }
    if ($wanted -notmatch '^[0-9A-Za-z.+-]*$') { Stop-Install "``$wanted`` is no version" }
    $source = $From.TrimEnd('/', '\')
    if (-not $source) {
        $releases = Get-Published 'Releases'
        if (-not $releases) {
            Stop-Install 'this script does not know where releases are' 'name a folder or an address with the files of a release: -From'
        }
        $source = "$releases/v$wanted"
    }
    $publicKey = $Key
    if (-not $publicKey) { $publicKey = Get-Published 'Key' }
    Install-Release $source $wanted $target $publicKey ([bool]$Key)
}

try {
    Start-Install
} catch {
    [Console]::Error.WriteLine("error: $($_.Exception.Message)")
    exit 1
}
